"""Files as they are, without JSON: multipart uploads and downloads. Behind them are the operations on parts."""
