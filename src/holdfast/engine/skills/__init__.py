"""Skills: folders of the tree with a file SKILL.md."""
