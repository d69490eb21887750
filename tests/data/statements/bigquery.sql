-- Statements of the forms that stand in GoogleSQL's documentation (google/zetasql, commit 2d8f7b7d), which is BigQuery's.

-- docs/differential-privacy.md, line 157
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 90, delta = .01, privacy_unit_column = person) clinic, COUNT(*) AS n FROM visits GROUP BY clinic;
-- plain: SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic

-- docs/aggregate-dp-functions.md, SUM
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 90, delta = .01, privacy_unit_column = person) clinic, SUM(cost) AS total FROM visits GROUP BY clinic;
-- plain: SELECT clinic, SUM(cost) AS total FROM visits GROUP BY clinic

-- docs/aggregate-dp-functions.md, COUNT
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 90, delta = .01, privacy_unit_column = person) clinic, COUNT(cost) AS priced FROM visits GROUP BY clinic;
-- plain: SELECT clinic, COUNT(cost) AS priced FROM visits GROUP BY clinic

-- docs/aggregate_functions.md, COUNTIF
SELECT COUNTIF(low < 0) AS num_negative, COUNTIF(low > 0) AS num_positive FROM readings;
-- plain: SELECT COUNT(*) FILTER (low < 0) AS num_negative, COUNT(*) FILTER (low > 0) AS num_positive FROM readings

-- docs/aggregate_functions.md, COUNT
SELECT COUNT(*) AS count_star, COUNT(DISTINCT school) AS count_dist FROM people;

-- docs/query-syntax.md, HAVING
SELECT clinic FROM visits GROUP BY clinic HAVING SUM(cost) > 15;

-- docs/query-syntax.md, GROUP BY
SELECT SUM(cost) AS total_cost, clinic, kind FROM visits GROUP BY clinic, kind;

-- docs/query-syntax.md, GROUP BY with ordinals
SELECT SUM(cost) AS total_cost, clinic, kind FROM visits GROUP BY 2, kind;

-- docs/query-syntax.md, GROUP BY ROLLUP
SELECT clinic, SUM(cost) AS total FROM visits GROUP BY ROLLUP (clinic);

-- docs/query-syntax.md, WITH
WITH q1 AS (SELECT clinic, cost FROM visits WHERE booked) SELECT clinic, SUM(cost) AS total FROM q1 GROUP BY clinic ORDER BY total DESC LIMIT 3;

-- docs/query-syntax.md, a subquery of groups
SELECT AVG(n) AS mean_n FROM (SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic) AS q;

-- docs/approximate_aggregate_functions.md
SELECT APPROX_COUNT_DISTINCT(school) AS schools FROM people;
-- plain: SELECT COUNT(DISTINCT school) AS schools FROM people

-- docs/mathematical_functions.md, SAFE_DIVIDE
SELECT SAFE_DIVIDE(SUM(cost), COUNT(*)) AS each_cost FROM visits;
-- plain: SELECT SUM(cost) / COUNT(*) AS each_cost FROM visits

-- docs/conditional_expressions.md, IF
SELECT IF(age < 40, 'young', 'old') AS grp, COUNT(*) AS n, AVG(income) AS mean_income FROM people GROUP BY grp;

-- docs/date_functions.md, EXTRACT
SELECT EXTRACT(MONTH FROM day) AS month, COUNT(*) AS n FROM visits WHERE day >= '2025-06-01' GROUP BY month ORDER BY month;

-- docs/query-syntax.md, UNION ALL
SELECT 'north' AS part, COUNT(*) AS n FROM visits WHERE clinic = 'north' UNION ALL SELECT 'all' AS part, COUNT(*) AS n FROM visits;

-- docs/aggregate_functions.md, SUM over CASE
SELECT SUM(CASE WHEN booked THEN cost ELSE 0 END) / SUM(cost) AS part_booked FROM visits;
