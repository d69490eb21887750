-- The questions of Tumult Analytics' tutorials, commit 1d620b03. They are Python there; this is what SQL says for them.

-- doc/tutorials/first-steps.rst, line 110
SELECT COUNT(*) AS count FROM people;

-- doc/tutorials/clamping-bounds.rst, line 64
SELECT AVG(age) AS age_average FROM people;

-- doc/tutorials/clamping-bounds.rst, line 185
SELECT SUM(cost) AS cost_sum FROM visits;

-- doc/tutorials/groupby-queries.rst, line 24
SELECT age, COUNT(person) FROM people WHERE age >= 60 GROUP BY age;

-- doc/tutorials/groupby-queries.rst, line 128
SELECT school, AVG(age) AS age_average FROM people WHERE school IN (1, 2, 3, 4) GROUP BY school ORDER BY age_average;

-- doc/tutorials/groupby-queries.rst, line 202
SELECT school, COUNT(*) AS count FROM people WHERE school IN (1, 2, 3) GROUP BY school ORDER BY school;

-- doc/tutorials/groupby-queries.rst, line 291
SELECT school, sex, COUNT(*) AS count FROM people WHERE school IN (1, 2, 3) AND sex IN ('f', 'm') GROUP BY school, sex ORDER BY school, sex;

-- doc/tutorials/groupby-queries.rst, line 598
SELECT DISTINCT town FROM people;

-- doc/tutorials/groupby-queries.rst, line 705
SELECT COUNT(DISTINCT town) AS towns FROM people;

-- doc/tutorials/privacy-id-basics.rst, line 171
SELECT clinic, COUNT(*) AS count FROM visits GROUP BY clinic ORDER BY count DESC LIMIT 2;

-- doc/tutorials/privacy-id-basics.rst, line 283
SELECT clinic, COUNT(DISTINCT person) AS count FROM visits GROUP BY clinic;

-- doc/tutorials/simple-transformations.rst, line 63
SELECT COUNT(*) FROM people WHERE age < 40;

-- doc/tutorials/simple-transformations.rst, line 168
SELECT EXTRACT(YEAR FROM joined) - 2000 AS since, COUNT(*) FROM people GROUP BY since;

-- doc/tutorials/simple-transformations.rst, line 371
SELECT FLOOR(age / 10) AS decade, sex, COUNT(*) AS n FROM people GROUP BY decade, sex;

-- doc/tutorials/simple-transformations.rst, line 471
SELECT county, COUNT(*) AS members FROM people JOIN towns USING (town) GROUP BY county ORDER BY members DESC;

-- doc/tutorials/more-with-privacy-ids.rst, one number for each person first
SELECT AVG(n) AS visits_each FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) AS per_person;
