# Judges the tokens of standard input, one a line, and prints a line of JSON for each.
import json
import sys
from verify import verifier

verify = verifier(*sys.argv[1:])
for line in sys.stdin:
    try:
        said = {"claims": verify(line.strip())}
    except Exception as e:
        said = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(said), flush=True)
