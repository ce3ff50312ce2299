-- needs 1
-- Tables that are empty but for moments. Without it, the planner takes one that was never analysed for thousands of
-- rows, and compiles statements that look at a few grants.

ANALYZE cuts;
ANALYZE trust_cuts;
ANALYZE application_cuts;
ANALYZE application_holds;
