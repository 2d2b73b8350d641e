"""What people prefer: learned from what they said, shown beside a recall, confirmed or given up."""
