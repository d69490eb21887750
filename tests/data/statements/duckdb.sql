-- Statements of the forms that stand in DuckDB's documentation (duckdb/duckdb-web, docs/stable/sql).

-- query_syntax/groupby.md
SELECT town, count(*) FROM people GROUP BY town;

-- query_syntax/groupby.md
SELECT town, sex, avg(income) FROM people GROUP BY town, sex;

-- query_syntax/groupby.md, GROUP BY ALL
SELECT town, sex, avg(income) FROM people GROUP BY ALL;

-- query_syntax/having.md
SELECT town, count(*) FROM people GROUP BY town HAVING count(*) >= 60;

-- query_syntax/having.md
SELECT town, avg(income) FROM people GROUP BY town HAVING avg(income) < 2 * median(income);

-- query_syntax/filter.md
SELECT count() AS total_rows, count() FILTER (cost <= 50) AS lte_fifty, count() FILTER (cost % 2 = 1) AS odds FROM visits;

-- query_syntax/filter.md
SELECT sum(cost) FILTER (cost <= 50) AS lte_fifty_sum, median(cost) FILTER (cost % 2 = 1) AS odds_median FROM visits;

-- query_syntax/filter.md
SELECT count(cost) FILTER (year(day) = 2025) AS "2025", count(cost) FILTER (year(day) = 2026) AS "2026" FROM visits;

-- query_syntax/filter.md
SELECT count(CASE WHEN year(day) = 2025 THEN cost END) AS "2025", count(CASE WHEN year(day) = 2026 THEN cost END) AS "2026" FROM visits;

-- query_syntax/filter.md
SELECT sum(cost <= 50) AS few FROM visits;

-- introduction.md
SELECT max(low) FROM readings;

-- introduction.md
SELECT device, max(low) FROM readings GROUP BY device HAVING max(low) < 1000;

-- introduction.md
SELECT device, max(low) FROM readings WHERE device LIKE 's%' GROUP BY device;

-- query_syntax/grouping_sets.md
SELECT clinic, kind, avg(cost) FROM visits GROUP BY ROLLUP (clinic, kind);

-- functions/aggregates.md
SELECT quantile_cont(minutes, 0.5), quantile_cont(minutes, 0.9) FROM visits;

-- functions/aggregates.md
SELECT stddev_samp(minutes), var_samp(minutes), stddev_pop(minutes) FROM visits;

-- functions/datepart.md
SELECT date_part('month', day) AS month, count(*) AS n FROM visits GROUP BY month ORDER BY month;

-- functions/date.md
SELECT date_trunc('month', day) AS month, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1;
