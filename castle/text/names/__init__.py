"""Names of people and projects in a text: known ones found, new ones noticed, in eleven languages."""
