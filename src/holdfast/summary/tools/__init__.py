"""Tool calls in summaries: pairing calls with results, and keeping the values they contain."""
