"""What must hold for the stored files of all accounts when nothing is left to process."""

_CURRENT = "JOIN nodes n ON n.account_id = c.account_id AND n.content_id = c.content_id AND n.removed_at IS NULL"
_DOCUMENTS = "SELECT 1 FROM documents d WHERE d.account_id = c.account_id AND d.content_id = c.content_id"
TREE_INCONSISTENCIES = {
    "a node is in no folder": """
        SELECT n.root, n.path FROM nodes n LEFT JOIN nodes p ON p.account_id = n.account_id AND p.root = n.root
        AND p.path = n.parent AND p.removed_at IS NULL AND p.is_folder = 1
        WHERE n.removed_at IS NULL AND n.parent <> '' AND p.node_id IS NULL
    """,
    "the path of a node does not begin with the one of its folder": """
        SELECT root, path, parent FROM nodes
        WHERE parent <> '' AND substr(path, 1, length(parent) + 1) <> parent || '/'
    """,
    "a file is still to be processed": "SELECT account_id, node_id FROM unprocessed",
    "a file was not processed": f"SELECT n.root, n.path FROM contents c {_CURRENT} WHERE c.state = 'pending'",
    "a file has no documents": f"""
        SELECT n.root, n.path FROM contents c {_CURRENT} WHERE c.state = 'done' AND NOT EXISTS ({_DOCUMENTS})
    """,
    "a document is there twice": """
        SELECT account_id, content_id, number FROM documents WHERE content_id IS NOT NULL
        GROUP BY account_id, content_id, number HAVING COUNT(*) > 1
    """,
    "a document belongs to a content that is outdated or removed": """
        SELECT d.content_id, d.kind FROM documents d LEFT JOIN nodes n ON n.account_id = d.account_id
        AND n.content_id = d.content_id AND n.removed_at IS NULL WHERE d.content_id IS NOT NULL AND n.node_id IS NULL
    """,
    "the bytes of a file are missing": """
        SELECT c.content_id FROM contents c WHERE c.blob IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM file_blobs b WHERE b.account_id = c.account_id AND b.hash = c.blob)
    """,
}
"""A statement that finds what is wrong, by its description."""
