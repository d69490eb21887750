-- Statements of the forms that stand in Qrlew's tests, commit 52de1a38.

-- tests/integration.rs, line 79
SELECT 1 + COUNT(cost) AS a, SUM(1 + minutes) AS b FROM visits;

-- tests/integration.rs, line 80
SELECT 1 + SUM(cost), COUNT(minutes) FROM visits;

-- tests/integration.rs, line 83
SELECT SUM(cost), COUNT(minutes) FROM visits WHERE cost > 4;

-- tests/integration.rs, line 85
SELECT 1 + SUM(cost), COUNT(minutes) FROM visits GROUP BY kind;

-- tests/integration.rs, line 87
SELECT CEIL(minutes / 30) AS half_hours, COUNT(cost) FROM visits GROUP BY CEIL(minutes / 30);

-- tests/integration.rs, line 88
SELECT CEIL(minutes / 30) AS half_hours, COUNT(cost) FROM visits GROUP BY half_hours;

-- tests/integration.rs, line 90
SELECT COUNT(kind), COUNT(visits.cost) FROM visits;

-- tests/integration.rs, line 92
SELECT 1 + SUM(cost), COUNT(minutes) FROM visits WHERE minutes > 4 GROUP BY clinic;

-- tests/integration.rs, line 95
WITH v AS (SELECT person, cost FROM visits), p AS (SELECT * FROM people) SELECT SUM(cost) FROM v JOIN p ON v.person = p.person;

-- tests/integration.rs, line 98
WITH v AS (SELECT person, cost FROM visits WHERE cost > 4) SELECT SUM(cost) AS total FROM v INNER JOIN people ON v.person = people.person WHERE age > 30;

-- tests/integration.rs, line 132
SELECT school, COUNT(*) AS my_count FROM people GROUP BY school ORDER BY my_count;

-- tests/integration.rs, line 136
SELECT DISTINCT clinic, kind FROM visits;

-- tests/integration.rs, line 138
SELECT SUM(age) AS s1 FROM people GROUP BY school HAVING COUNT(*) > 5;

-- tests/integration.rs, line 148
SELECT SUBSTRING(clinic FROM 1 FOR 1) AS m, COUNT(*) AS my_count FROM visits GROUP BY SUBSTRING(clinic FROM 1 FOR 1);

-- tests/integration.rs, line 179
SELECT kind AS k1, SUM(cost) AS s1 FROM visits WHERE kind IS NOT NULL GROUP BY kind;

-- tests/integration.rs, line 180
SELECT COUNT(*) AS c1 FROM visits WHERE kind ILIKE '%OO%';

-- tests/integration.rs, line 181
SELECT kind, CASE WHEN kind IS NULL THEN 'Null' ELSE 'NotNull' END AS case_kind, COUNT(*) AS c1 FROM visits GROUP BY kind;
