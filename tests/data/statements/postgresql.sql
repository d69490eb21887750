-- Statements of the forms that stand in PostgreSQL's documentation and tests (postgres/postgres, commit 01d1c45c).

-- doc/src/sgml/query.sgml, tutorial-agg
SELECT device, count(*), max(low) FROM readings GROUP BY device;

-- doc/src/sgml/query.sgml, tutorial-agg
SELECT device, count(*), max(low) FROM readings GROUP BY device HAVING max(low) < 1000;

-- doc/src/sgml/query.sgml, tutorial-agg
SELECT device, count(*) FILTER (WHERE low < 25), max(low) FROM readings GROUP BY device;

-- src/test/regress/sql/aggregates.sql
SELECT avg(cost) AS avg_cost FROM visits;

-- src/test/regress/sql/aggregates.sql
SELECT avg(cost) AS avg_32 FROM visits WHERE cost < 32;

-- src/test/regress/sql/aggregates.sql
SELECT avg(rain)::numeric(10,3) AS avg_rain FROM readings;

-- src/test/regress/sql/aggregates.sql
SELECT max(readings.high) AS max_high FROM readings;

-- src/test/regress/sql/aggregates.sql
SELECT stddev_pop(rain), stddev_samp(rain), var_pop(rain), var_samp(rain) FROM readings;

-- src/test/regress/sql/aggregates.sql
SELECT count(*), sum(low), sum(high) FROM readings WHERE low IN (10, 20, 30, 31);

-- src/test/regress/sql/aggregates.sql
SELECT count(school) AS cnt FROM people;

-- src/test/regress/sql/aggregates.sql
SELECT count(DISTINCT school) AS cnt FROM people;

-- src/test/regress/sql/aggregates.sql
SELECT school, count(*), sum(age) FROM people GROUP BY school ORDER BY school;

-- src/test/regress/sql/aggregates.sql
SELECT corr(low, high), covar_pop(low, high) FROM readings;

-- src/test/regress/sql/aggregates.sql
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY minutes) FROM visits;

-- src/test/regress/sql/aggregates.sql
SELECT max(low) FROM readings ORDER BY max(low) + 1;

-- src/test/regress/sql/groupingsets.sql
SELECT clinic, kind, sum(cost) FROM visits GROUP BY ROLLUP (clinic, kind) ORDER BY 1, 2;

-- doc/src/sgml/queries.sgml, a subquery with an aggregate for each person
SELECT count(*) AS frequent FROM (SELECT person FROM visits GROUP BY person HAVING count(*) >= 2) AS often;

-- doc/src/sgml/func.sgml, EXISTS
SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.person = people.person AND cost > 100);

-- doc/src/sgml/func.sgml, IN
SELECT count(*) FROM people WHERE person IN (SELECT person FROM visits WHERE clinic = 'north');
