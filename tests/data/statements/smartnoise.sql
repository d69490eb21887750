-- Statements of the forms that stand in SmartNoise SQL, commit 81d1351b.

-- sql/tests/query/queries/run/run.sql, line 1
SELECT SUM(cost) AS total FROM visits WHERE clinic = 'north';

-- sql/tests/query/queries/run/run.sql, line 2
SELECT AVG(minutes) AS minutes FROM visits GROUP BY booked;

-- sql/tests/query/queries/run/run.sql, line 3
SELECT clinic, SUM(cost) AS total_cost, AVG(cost) AS mean_cost, AVG(minutes) FROM visits WHERE booked = TRUE GROUP BY clinic;

-- sql/tests/query/queries/run/run.sql, line 4
SELECT COUNT(person) AS visitors FROM visits;

-- sql/tests/query/queries/run/run.sql, line 8
SELECT clinic, SUM(cost) AS total FROM visits WHERE clinic IN ('north', 'south') GROUP BY clinic ORDER BY clinic DESC;

-- sql/tests/query/queries/run/run.sql, line 10
SELECT COUNT(DISTINCT person) AS n, clinic, kind, booked FROM visits WHERE minutes > 55 GROUP BY clinic, kind, booked;

-- sql/tests/query/queries/run/run.sql, line 14
SELECT clinic, booked, AVG(minutes) FROM visits GROUP BY clinic, booked ORDER BY clinic, booked DESC;

-- sql/tests/query/queries/run/run.sql, line 15
SELECT POWER(COUNT(person) / 100, 2) AS n, clinic FROM visits GROUP BY clinic;

-- sql/tests/query/queries/run/run.sql, line 16
SELECT SQRT(AVG(cost * cost) - AVG(cost) * AVG(cost)) FROM visits;

-- sql/tests/query/queries/validate_pums/validate_pums.sql, line 2
SELECT COUNT(*), VAR_POP(age) AS var_age FROM people;

-- sql/tests/query/queries/validate_pums/validate_pums.sql, line 4
SELECT p.sex, AVG(age) AS aa FROM people AS p GROUP BY sex;

-- sql/tests/query/queries/validate_pums/validate_pums.sql, line 5
SELECT TOP 5 town, AVG(income) FROM people GROUP BY town ORDER BY town;
-- plain: SELECT town, AVG(income) FROM people GROUP BY town ORDER BY town LIMIT 5

-- sql/tests/query/queries/validate_pums/validate_pums.sql, line 7
SELECT 3 AS three, p.sex, town, AVG(income) FROM people AS p GROUP BY town, sex;

-- sql/tests/query/queries/validate_pums/validate_pums.sql, line 8
SELECT town FROM people GROUP BY town;

-- sql/tests/query/queries/validate_pums/validate_pums.sql, line 11
SELECT (SUM(age)) * 1 AS age FROM people;

-- sql/tests/query/queries/validate_pums/validate_pums.sql, line 14
SELECT SUM(age) FROM people GROUP BY sex, CASE WHEN age > 60 THEN 1 ELSE 0 END;

-- sql/docs/source/advanced.rst, line 127
SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex ORDER BY sex;

-- sql/docs/source/metadata.rst, line 134
SELECT SUM(Minutes) FROM VISITS;

-- sql/tests/query/test_having.py
SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic HAVING n > 100 ORDER BY n DESC;
