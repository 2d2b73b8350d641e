"""Studies of what a palace holds; nothing of the product depends on them."""
