"""Write the chats to a file, in LongMemEval's format."""

import json
import sys
from pathlib import Path

from assistant_chats import longmemeval_rows

Path(sys.argv[1]).write_text(json.dumps(longmemeval_rows(), ensure_ascii=False), "utf-8")
