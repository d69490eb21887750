--
-- PostgreSQL database dump
--

\restrict n8eNIqOjhfBIuQDQbeMrTLwEgmaRrJgEblRG4AgtF4QyxTdZgfIaJKI6k2UaEEX

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: balance; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.balance (
    root text NOT NULL,
    path text NOT NULL,
    spent text NOT NULL,
    taken bigint NOT NULL,
    closed integer NOT NULL
);


--
-- Name: entry; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entry (
    root text NOT NULL,
    sequence bigint NOT NULL,
    scope text NOT NULL,
    key text,
    redeems bigint,
    body text NOT NULL,
    hash text NOT NULL
);


--
-- Name: migration; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.migration (
    number integer NOT NULL,
    name text NOT NULL
);


--
-- Name: scope; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.scope (
    root text NOT NULL,
    path text NOT NULL,
    kind text NOT NULL,
    caps text NOT NULL,
    slots bigint,
    description text NOT NULL,
    opened bigint NOT NULL
);


--
-- Data for Name: balance; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.balance VALUES ('basic', 'basic', '{"delta":"0.000000001","epsilon":"0.150625"}', 0, 0);
INSERT INTO public.balance VALUES ('advanced', 'advanced', '{"delta":"0.000000001","epsilon squared":"0.015969140625"}', 0, 0);
INSERT INTO public.balance VALUES ('renyi', 'renyi', '{"renyi:21.9845371697538":"0.0979845628782890561581792043810423820107"}', 0, 0);
INSERT INTO public.balance VALUES ('gdp', 'gdp', '{"mu squared":"0.000025"}', 0, 0);
INSERT INTO public.balance VALUES ('union', 'union', '{"epsilon (pure)":"2.140625","renyi:21.9845371697538 (renyi)":"0.0979845628782890561581792043810423820107"}', 0, 0);
INSERT INTO public.balance VALUES ('menu', 'menu', '{"member 1":"1","member 2":"1"}', 0, 0);
INSERT INTO public.balance VALUES ('pure', 'pure', '{"epsilon":"0.160625"}', 0, 0);
INSERT INTO public.balance VALUES ('pure', 'pure/visits/ada', '{"epsilon":"0"}', 0, 0);
INSERT INTO public.balance VALUES ('pure', 'pure/visits', '{"epsilon":"0.02"}', 1, 0);
INSERT INTO public.balance VALUES ('yearly', 'yearly', '{"epsilon":"0"}', 2026, 0);
INSERT INTO public.balance VALUES ('planned', 'planned', '{"epsilon":"0"}', 0, 0);
INSERT INTO public.balance VALUES ('zcdp', 'zcdp/wards/north', '{"delta":"0","rho":"0.002"}', 0, 0);
INSERT INTO public.balance VALUES ('zcdp', 'zcdp/wards', '{"delta":"0","rho":"0.002"}', 0, 0);
INSERT INTO public.balance VALUES ('zcdp', 'zcdp', '{"delta":"0","rho":"0.0099369111724728486315094677649994991954"}', 0, 0);
INSERT INTO public.balance VALUES ('zcdp', 'zcdp/wards/south', '{"delta":"0","rho":"0.002"}', 0, 0);
INSERT INTO public.balance VALUES ('zcdp', 'zcdp/health', '{"delta":"0","rho":"0"}', 0, 1);


--
-- Data for Name: entry; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.entry VALUES ('pure', 1, 'pure', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"epsilon":"0.3"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"epsilon":"3/10","filter":"pure","version":2},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"pure","sequence":1,"time":"2026-11-24T05:31:58.033620Z","version":2}', '2320ed2f5d4c9abd2f25db6c3ff0861c1f2c179cdbae929671d4de55a3de8e1c');
INSERT INTO public.entry VALUES ('pure', 2, 'pure', 'one RandomizedResponse(0.015625)', NULL, '{"actor":"Ada","cost":{"epsilon":"0.015625"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.015625)","pure":"0.015625","version":1},"key":"one RandomizedResponse(0.015625)","kind":"granted","previous":"2320ed2f5d4c9abd2f25db6c3ff0861c1f2c179cdbae929671d4de55a3de8e1c","scope":"pure","sequence":2,"time":"2026-11-24T05:31:58.040373Z","version":2}', 'd2bcb37c9195ac46a76bb08f0955924242248a0767b8427bdc5319de2dbc4a07');
INSERT INTO public.entry VALUES ('pure', 3, 'pure', NULL, 2, '{"actor":"Ada","attempt":"265cdeec23b3e3a87b6c739adca32596da5780ca871ee133d4720754453325ea","kind":"redeemed","previous":"d2bcb37c9195ac46a76bb08f0955924242248a0767b8427bdc5319de2dbc4a07","redeems":2,"scope":"pure","sequence":3,"time":"2026-11-24T05:31:58.042593Z","version":2}', '54baa90f52a7327e035fae01ef80ca51909f35b8b8379e62dda09b0766487e33');
INSERT INTO public.entry VALUES ('pure', 4, 'pure', 'one RandomizedResponse(0.125)', NULL, '{"actor":"Ada","cost":{"epsilon":"0.125"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.125)","pure":"0.125","version":1},"key":"one RandomizedResponse(0.125)","kind":"granted","previous":"54baa90f52a7327e035fae01ef80ca51909f35b8b8379e62dda09b0766487e33","scope":"pure","sequence":4,"time":"2026-11-24T05:31:58.044473Z","version":2}', '02a0581944512769d8bb401c53df2b59703abf0299a6e3ffaa1be4eff6ab1ad1');
INSERT INTO public.entry VALUES ('pure', 5, 'pure', NULL, 4, '{"actor":"Ada","attempt":"ece8fac2c9bcf173b4b34c426767bef74cd91fffdab8fbfcc2cb6c34e0836d67","kind":"redeemed","previous":"02a0581944512769d8bb401c53df2b59703abf0299a6e3ffaa1be4eff6ab1ad1","redeems":4,"scope":"pure","sequence":5,"time":"2026-11-24T05:31:58.045933Z","version":2}', '9ff9694d1b3694cf72f8f361d1b5a632c33499a81d03e2749721b13bb05ea8c3');
INSERT INTO public.entry VALUES ('basic', 1, 'basic', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"delta":"0.000001","epsilon":"1"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"delta":"1e-06","epsilon":"1/1","filter":"basic","version":2},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"basic","sequence":1,"time":"2026-11-24T05:31:58.047810Z","version":2}', 'd1badbcbf1f9cb89e826da3fa99453c06a34d888680cb901b003ba10ee949707');
INSERT INTO public.entry VALUES ('basic', 2, 'basic', 'one RandomizedResponse(0.015625)', NULL, '{"actor":"Ada","cost":{"delta":"0","epsilon":"0.015625"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.015625)","pure":"0.015625","version":1},"key":"one RandomizedResponse(0.015625)","kind":"granted","previous":"d1badbcbf1f9cb89e826da3fa99453c06a34d888680cb901b003ba10ee949707","scope":"basic","sequence":2,"time":"2026-11-24T05:31:58.051633Z","version":2}', '36c173082b1f3be79a27378c85db3aec75da334e1fd948f967153621493f3c05');
INSERT INTO public.entry VALUES ('basic', 3, 'basic', NULL, 2, '{"actor":"Ada","attempt":"db828a93ca3c43e85d2e5bde8442c3ed27f3363fd704e5e3ff19d4a74872be01","kind":"redeemed","previous":"36c173082b1f3be79a27378c85db3aec75da334e1fd948f967153621493f3c05","redeems":2,"scope":"basic","sequence":3,"time":"2026-11-24T05:31:58.053239Z","version":2}', '6c4728cb2b6969ec46462746004067ed7cdb9a6b057f49bc2b6b5a82dc98ef4a');
INSERT INTO public.entry VALUES ('basic', 4, 'basic', 'one RandomizedResponse(0.125)', NULL, '{"actor":"Ada","cost":{"delta":"0","epsilon":"0.125"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.125)","pure":"0.125","version":1},"key":"one RandomizedResponse(0.125)","kind":"granted","previous":"6c4728cb2b6969ec46462746004067ed7cdb9a6b057f49bc2b6b5a82dc98ef4a","scope":"basic","sequence":4,"time":"2026-11-24T05:31:58.054655Z","version":2}', '53e9d4586764a3c0aee938a02580b5fa7d4240f2d70617ebd18562705884fc6f');
INSERT INTO public.entry VALUES ('basic', 5, 'basic', NULL, 4, '{"actor":"Ada","attempt":"994f63cbcf0274ceaad37868038eda95348f03a92dac6f8f2b6269b4fe4ccf49","kind":"redeemed","previous":"53e9d4586764a3c0aee938a02580b5fa7d4240f2d70617ebd18562705884fc6f","redeems":4,"scope":"basic","sequence":5,"time":"2026-11-24T05:31:58.055800Z","version":2}', 'b030c2932f74f4ce8692b746263f144e3a4fe5bfa3c2f1b3c8fb851fa56c745b');
INSERT INTO public.entry VALUES ('basic', 6, 'basic', 'one BlackBox(0.01, delta=1e-09)', NULL, '{"actor":"Ada","cost":{"delta":"0.000000001","epsilon":"0.01"},"description":{"adjacency":"add-remove","mechanism":"BlackBox(0.01, delta=1e-09)","version":1},"key":"one BlackBox(0.01, delta=1e-09)","kind":"granted","previous":"b030c2932f74f4ce8692b746263f144e3a4fe5bfa3c2f1b3c8fb851fa56c745b","scope":"basic","sequence":6,"time":"2026-11-24T05:31:58.057914Z","version":2}', 'f3f0ede567686509922d0cc0978e9cb3b79236538d816f60b83a59e123aafdb8');
INSERT INTO public.entry VALUES ('basic', 7, 'basic', NULL, 6, '{"actor":"Ada","attempt":"68e28a7e114c2c03774c74106ab1414eaf3817faa8e91b6865054a3d26038db9","kind":"redeemed","previous":"f3f0ede567686509922d0cc0978e9cb3b79236538d816f60b83a59e123aafdb8","redeems":6,"scope":"basic","sequence":7,"time":"2026-11-24T05:31:58.058995Z","version":2}', 'fb9ca04261d9d3876ac4343314b6767d68b4b1da5dc5d1c52d61f937c4326796');
INSERT INTO public.entry VALUES ('advanced', 1, 'advanced', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"delta":"0.0000001","epsilon squared":"0.0346823958149991569087413655847401296718"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"delta":"1e-06","epsilon":"1.0","filter":"advanced","slack":"9e-07","version":2},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"advanced","sequence":1,"time":"2026-11-24T05:31:58.060801Z","version":2}', '9d3ba3cd28eba623d86fd6011c0f2c9614046e10bb8ee16b1761505aebf49d77');
INSERT INTO public.entry VALUES ('advanced', 2, 'advanced', 'one RandomizedResponse(0.015625)', NULL, '{"actor":"Ada","cost":{"delta":"0","epsilon squared":"0.000244140625"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.015625)","pure":"0.015625","version":1},"key":"one RandomizedResponse(0.015625)","kind":"granted","previous":"9d3ba3cd28eba623d86fd6011c0f2c9614046e10bb8ee16b1761505aebf49d77","scope":"advanced","sequence":2,"time":"2026-11-24T05:31:58.065352Z","version":2}', 'cf2e4a62c382db07b200f04334eaf332b7829ec166e45b750e5c3d351c8fcd31');
INSERT INTO public.entry VALUES ('advanced', 3, 'advanced', NULL, 2, '{"actor":"Ada","attempt":"d370cce0892c6f562fe17bb5e43148d06eef3e21332165e39c2daa76632b167c","kind":"redeemed","previous":"cf2e4a62c382db07b200f04334eaf332b7829ec166e45b750e5c3d351c8fcd31","redeems":2,"scope":"advanced","sequence":3,"time":"2026-11-24T05:31:58.066917Z","version":2}', '2fc7f11f1be6fb80c41df5fa294a33a1e571415f235bec712cd2ef21c186e1a4');
INSERT INTO public.entry VALUES ('advanced', 4, 'advanced', 'one RandomizedResponse(0.125)', NULL, '{"actor":"Ada","cost":{"delta":"0","epsilon squared":"0.015625"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.125)","pure":"0.125","version":1},"key":"one RandomizedResponse(0.125)","kind":"granted","previous":"2fc7f11f1be6fb80c41df5fa294a33a1e571415f235bec712cd2ef21c186e1a4","scope":"advanced","sequence":4,"time":"2026-11-24T05:31:58.068531Z","version":2}', '0805a80160eb01e66213527c079884ae2d085d304be113dac395aa58858b81f9');
INSERT INTO public.entry VALUES ('advanced', 5, 'advanced', NULL, 4, '{"actor":"Ada","attempt":"51b0d9cdd3ae26d44e559c892fa7fe4d21285f5ba4975564d4121a80c098dd15","kind":"redeemed","previous":"0805a80160eb01e66213527c079884ae2d085d304be113dac395aa58858b81f9","redeems":4,"scope":"advanced","sequence":5,"time":"2026-11-24T05:31:58.069595Z","version":2}', '7396ca9d5136c2fa30ab8f60f3d0896e99624ab02faa05ca2cfb54ddec5c79a5');
INSERT INTO public.entry VALUES ('advanced', 6, 'advanced', 'one BlackBox(0.01, delta=1e-09)', NULL, '{"actor":"Ada","cost":{"delta":"0.000000001","epsilon squared":"0.0001"},"description":{"adjacency":"add-remove","mechanism":"BlackBox(0.01, delta=1e-09)","version":1},"key":"one BlackBox(0.01, delta=1e-09)","kind":"granted","previous":"7396ca9d5136c2fa30ab8f60f3d0896e99624ab02faa05ca2cfb54ddec5c79a5","scope":"advanced","sequence":6,"time":"2026-11-24T05:31:58.072087Z","version":2}', 'f1d0ea84f70d9275a7501bb1f5157a62c44b263d29af662c242290260a670c9c');
INSERT INTO public.entry VALUES ('advanced', 7, 'advanced', NULL, 6, '{"actor":"Ada","attempt":"ac2dbc5ec5ab10039558233b3bbc705639426528b49c2c9b10381cc63ac9a2cd","kind":"redeemed","previous":"f1d0ea84f70d9275a7501bb1f5157a62c44b263d29af662c242290260a670c9c","redeems":6,"scope":"advanced","sequence":7,"time":"2026-11-24T05:31:58.073252Z","version":2}', 'ff2ce3ffbfae57d28c55ad6b88bcbe8eeda7329a83658722b8c0c625c059b02a');
INSERT INTO public.entry VALUES ('zcdp', 1, 'zcdp', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"delta":"0","rho":"0.02435599893576366"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"delta":"0.0","filter":"concentrated","rho":"0.02435599893576366","version":2},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"zcdp","sequence":1,"time":"2026-11-24T05:31:58.074317Z","version":2}', 'c4f602da8b2584e0cbc1d8ceaa43692bf9a575f48825feaa0ea441a4645ccdbc');
INSERT INTO public.entry VALUES ('zcdp', 2, 'zcdp', 'one RandomizedResponse(0.015625)', NULL, '{"actor":"Ada","cost":{"delta":"0","rho":"0.0001220678290337661245357203654293698492"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.015625)","pure":"0.015625","version":1},"key":"one RandomizedResponse(0.015625)","kind":"granted","previous":"c4f602da8b2584e0cbc1d8ceaa43692bf9a575f48825feaa0ea441a4645ccdbc","scope":"zcdp","sequence":2,"time":"2026-11-24T05:31:58.077660Z","version":2}', '2a9fe9e6dfe165b1fb583d8e0d62cb1003624b16cb0dbc6637b23d3417ba6501');
INSERT INTO public.entry VALUES ('zcdp', 3, 'zcdp', NULL, 2, '{"actor":"Ada","attempt":"d91832cb07d5c57e7f44c90e7697076ede497532f6a24c3eb55d0df21118d29e","kind":"redeemed","previous":"2a9fe9e6dfe165b1fb583d8e0d62cb1003624b16cb0dbc6637b23d3417ba6501","redeems":2,"scope":"zcdp","sequence":3,"time":"2026-11-24T05:31:58.078961Z","version":2}', '42250d45d45289e84e8ef51811967b79c72f4a40c862ae5febbf0a6cadd266c6');
INSERT INTO public.entry VALUES ('zcdp', 4, 'zcdp', 'one RandomizedResponse(0.125)', NULL, '{"actor":"Ada","cost":{"delta":"0","rho":"0.0078023433434390825069737473995701293462"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.125)","pure":"0.125","version":1},"key":"one RandomizedResponse(0.125)","kind":"granted","previous":"42250d45d45289e84e8ef51811967b79c72f4a40c862ae5febbf0a6cadd266c6","scope":"zcdp","sequence":4,"time":"2026-11-24T05:31:58.080206Z","version":2}', '36dc9a5bc3cdbaa11cb9de7d1bfcfad1f30c92b55c72c9bd493acabb02e5a0d8');
INSERT INTO public.entry VALUES ('zcdp', 5, 'zcdp', NULL, 4, '{"actor":"Ada","attempt":"ea61c5e26867778d8e12745166b7b2223497db13d893d10efcc6093b8539b72a","kind":"redeemed","previous":"36dc9a5bc3cdbaa11cb9de7d1bfcfad1f30c92b55c72c9bd493acabb02e5a0d8","redeems":4,"scope":"zcdp","sequence":5,"time":"2026-11-24T05:31:58.081343Z","version":2}', '12c8604d9c3011f553e7bc73534f5fb62b3303e0c45bff8f10a6409034bbe07e');
INSERT INTO public.entry VALUES ('zcdp', 6, 'zcdp', 'one Gaussian(200.0)', NULL, '{"actor":"Ada","cost":{"delta":"0","rho":"0.0000125"},"description":{"adjacency":"add-remove","mechanism":"Gaussian(200.0)","version":1},"key":"one Gaussian(200.0)","kind":"granted","previous":"12c8604d9c3011f553e7bc73534f5fb62b3303e0c45bff8f10a6409034bbe07e","scope":"zcdp","sequence":6,"time":"2026-11-24T05:31:58.082615Z","version":2}', '6150d0d70d944ca065ddc968bfa91de3566b5432b56259270b72f4350a4cb3ce');
INSERT INTO public.entry VALUES ('zcdp', 7, 'zcdp', NULL, 6, '{"actor":"Ada","attempt":"04dcb5a2a51db878e30048ba9514b306f31378ba482d2f4bd101e27c9f19c333","kind":"redeemed","previous":"6150d0d70d944ca065ddc968bfa91de3566b5432b56259270b72f4350a4cb3ce","redeems":6,"scope":"zcdp","sequence":7,"time":"2026-11-24T05:31:58.083621Z","version":2}', 'c7699a02cad59e6b4c56d5fa9cd3c4d481fb5bddf237c97940ffc0f4adfe8784');
INSERT INTO public.entry VALUES ('zcdp', 8, 'zcdp', 'one BlackBox(0.01, delta=1e-09)', NULL, '{"actor":"Ada","cost":{"delta":"0.000000001","rho":"0.0000499995833375000355730012613353352436"},"description":{"adjacency":"add-remove","mechanism":"BlackBox(0.01, delta=1e-09)","version":1},"key":"one BlackBox(0.01, delta=1e-09)","kind":"refused","previous":"c7699a02cad59e6b4c56d5fa9cd3c4d481fb5bddf237c97940ffc0f4adfe8784","scope":"zcdp","sequence":8,"short":{"asked":"0.000000001","currency":"delta","left":"0","scope":"zcdp"},"time":"2026-11-24T05:31:58.085224Z","version":2}', '9d33b8861832043eed2df99e943bf12967b44a95bca9c2b4d2f4cd9706d373ef');
INSERT INTO public.entry VALUES ('renyi', 1, 'renyi', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"renyi:21.9845371697538":"0.5354553638895618"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"budget":"0.5354553638895618","filter":"renyi","order":"21.9845371697538","version":2},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"renyi","sequence":1,"time":"2026-11-24T05:31:58.088212Z","version":2}', 'cc39c345408898a8ec56d0cc4163125643e891ad669c0da5bea752e3f45f2592');
INSERT INTO public.entry VALUES ('renyi', 2, 'renyi', 'one RandomizedResponse(0.015625)', NULL, '{"actor":"Ada","cost":{"renyi:21.9845371697538":"0.0026346931605320971815642483448982602568"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.015625)","pure":"0.015625","version":1},"key":"one RandomizedResponse(0.015625)","kind":"granted","previous":"cc39c345408898a8ec56d0cc4163125643e891ad669c0da5bea752e3f45f2592","scope":"renyi","sequence":2,"time":"2026-11-24T05:31:58.092194Z","version":2}', '764ab9f2940fc5f06e8195aef48981378757a64aa2d26abb7248449289fa3bda');
INSERT INTO public.entry VALUES ('renyi', 3, 'renyi', NULL, 2, '{"actor":"Ada","attempt":"6d1103dd00f1064217eac419c9dd03909abf27f5c72cdc0579f25ef2a48935ce","kind":"redeemed","previous":"764ab9f2940fc5f06e8195aef48981378757a64aa2d26abb7248449289fa3bda","redeems":2,"scope":"renyi","sequence":3,"time":"2026-11-24T05:31:58.093608Z","version":2}', '6ed2123bee6ca9c89f56eae5b586b4493f7506c86e6ccbab2a1133df479be5db');
INSERT INTO public.entry VALUES ('renyi', 4, 'renyi', 'one RandomizedResponse(0.125)', NULL, '{"actor":"Ada","cost":{"renyi:21.9845371697538":"0.0950750630031350352222574429106316529215"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.125)","pure":"0.125","version":1},"key":"one RandomizedResponse(0.125)","kind":"granted","previous":"6ed2123bee6ca9c89f56eae5b586b4493f7506c86e6ccbab2a1133df479be5db","scope":"renyi","sequence":4,"time":"2026-11-24T05:31:58.095056Z","version":2}', '4321a2284ec2a7ca7a01e27bae423ae072f41c4dceaee3b9833d82897e34f708');
INSERT INTO public.entry VALUES ('renyi', 5, 'renyi', NULL, 4, '{"actor":"Ada","attempt":"ed689151502dc23c975999b4e1255f985b85031838db1b539ab549cdc3e4571d","kind":"redeemed","previous":"4321a2284ec2a7ca7a01e27bae423ae072f41c4dceaee3b9833d82897e34f708","redeems":4,"scope":"renyi","sequence":5,"time":"2026-11-24T05:31:58.095974Z","version":2}', '21b6c8f3ea0b15d9bdf63e80c0da5c2b3c27ccf363ef36aaa7017fcfa67dbab8');
INSERT INTO public.entry VALUES ('renyi', 6, 'renyi', 'one Gaussian(200.0)', NULL, '{"actor":"Ada","cost":{"renyi:21.9845371697538":"0.0002748067146219237543575131255124688324"},"description":{"adjacency":"add-remove","mechanism":"Gaussian(200.0)","version":1},"key":"one Gaussian(200.0)","kind":"granted","previous":"21b6c8f3ea0b15d9bdf63e80c0da5c2b3c27ccf363ef36aaa7017fcfa67dbab8","scope":"renyi","sequence":6,"time":"2026-11-24T05:31:58.097447Z","version":2}', '1806a97f4bb4ab3376d91573bb330b9f0208dbce2139e11e8339fc50616bbe50');
INSERT INTO public.entry VALUES ('renyi', 7, 'renyi', NULL, 6, '{"actor":"Ada","attempt":"16c7d02fc2f94dba951a69936c0eda104f7748c3438b79e98ad32b86e5eaea01","kind":"redeemed","previous":"1806a97f4bb4ab3376d91573bb330b9f0208dbce2139e11e8339fc50616bbe50","redeems":6,"scope":"renyi","sequence":7,"time":"2026-11-24T05:31:58.098467Z","version":2}', '44a58cf15bdeae66e07f559951b76187f6f2a288020921f543474c99c9d2c545');
INSERT INTO public.entry VALUES ('gdp', 1, 'gdp', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"mu squared":"0.0560289638252584190911750121492836"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"filter":"gaussian","mu":"0.23670438066343094","version":2},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"gdp","sequence":1,"time":"2026-11-24T05:31:58.099714Z","version":2}', 'a66c1e79abbd052d36a222373ca3f28dbaafda6e7aedcf24ab9799b9463785a4');
INSERT INTO public.entry VALUES ('gdp', 2, 'gdp', 'one Gaussian(200.0)', NULL, '{"actor":"Ada","cost":{"mu squared":"0.000025"},"description":{"adjacency":"add-remove","mechanism":"Gaussian(200.0)","version":1},"key":"one Gaussian(200.0)","kind":"granted","previous":"a66c1e79abbd052d36a222373ca3f28dbaafda6e7aedcf24ab9799b9463785a4","scope":"gdp","sequence":2,"time":"2026-11-24T05:31:58.102755Z","version":2}', '0148a5afd91b27665dde8a8212a1e59398c3e1f2be0a95e3ba56535dd50b8dde');
INSERT INTO public.entry VALUES ('gdp', 3, 'gdp', NULL, 2, '{"actor":"Ada","attempt":"f416530e21b2b0ea4ba8de6fdfe94f3797b9e230823495059318409b6d6c91ba","kind":"redeemed","previous":"0148a5afd91b27665dde8a8212a1e59398c3e1f2be0a95e3ba56535dd50b8dde","redeems":2,"scope":"gdp","sequence":3,"time":"2026-11-24T05:31:58.104142Z","version":2}', '27a02ea0d7ca28e65feb819a78293a1e1bcd1154d37d0d68510c84bf77e073a7');
INSERT INTO public.entry VALUES ('union', 1, 'union', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"epsilon (pure)":"1000000000000000000000000000000000000","renyi:21.9845371697538 (renyi)":"1000000000000000000000000000000000000"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","alternatives":[{"epsilon (pure)":"1"},{"renyi:21.9845371697538 (renyi)":"0.5354553638895618"}],"filter":{"filter":"union","filters":[{"epsilon":"1.0","filter":"pure","version":2},{"budget":"0.5354553638895618","filter":"renyi","order":"21.9845371697538","version":2}],"shares":["0.0","1e-06"],"version":2},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"union","sequence":1,"time":"2026-11-24T05:31:58.105571Z","version":2}', '87856cc4d3bd054a209694098db1e66ac8066074ad8cf8bdaef43292bf7e6e9a');
INSERT INTO public.entry VALUES ('union', 2, 'union', 'one RandomizedResponse(0.015625)', NULL, '{"actor":"Ada","cost":{"epsilon (pure)":"0.015625","renyi:21.9845371697538 (renyi)":"0.0026346931605320971815642483448982602568"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.015625)","pure":"0.015625","version":1},"key":"one RandomizedResponse(0.015625)","kind":"granted","previous":"87856cc4d3bd054a209694098db1e66ac8066074ad8cf8bdaef43292bf7e6e9a","scope":"union","sequence":2,"time":"2026-11-24T05:31:58.109174Z","version":2}', '63e565dfc44c0981748dcf75e932d06db7a995f69ac2ccffecfedf35dec19187');
INSERT INTO public.entry VALUES ('union', 3, 'union', NULL, 2, '{"actor":"Ada","attempt":"994baae4a613e7589ef41e00f3aa673d504768b3bad56b9ef8583a28f1292937","kind":"redeemed","previous":"63e565dfc44c0981748dcf75e932d06db7a995f69ac2ccffecfedf35dec19187","redeems":2,"scope":"union","sequence":3,"time":"2026-11-24T05:31:58.110476Z","version":2}', 'c23ca99d50c78546dceb3a9696e8ea3291a9ece9791900b7c4137fdab86ce84c');
INSERT INTO public.entry VALUES ('union', 4, 'union', 'one RandomizedResponse(0.125)', NULL, '{"actor":"Ada","cost":{"epsilon (pure)":"0.125","renyi:21.9845371697538 (renyi)":"0.0950750630031350352222574429106316529215"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.125)","pure":"0.125","version":1},"key":"one RandomizedResponse(0.125)","kind":"granted","previous":"c23ca99d50c78546dceb3a9696e8ea3291a9ece9791900b7c4137fdab86ce84c","scope":"union","sequence":4,"time":"2026-11-24T05:31:58.112032Z","version":2}', 'c1e9f57898ee6a616fb18594478d687aed5a93c5a5f7bf7c727bbe9a3f28c80c');
INSERT INTO public.entry VALUES ('union', 5, 'union', NULL, 4, '{"actor":"Ada","attempt":"037dc9aac5275f49614b17e337634c6c1ef73b8e4e2bc7ff760c4bdeeb156b5e","kind":"redeemed","previous":"c1e9f57898ee6a616fb18594478d687aed5a93c5a5f7bf7c727bbe9a3f28c80c","redeems":4,"scope":"union","sequence":5,"time":"2026-11-24T05:31:58.113166Z","version":2}', '902a4ce38fec8d0f04c9dc3297bc13f66555b8be5845fe0eb40fe9898bde9c80');
INSERT INTO public.entry VALUES ('union', 6, 'union', 'one Gaussian(200.0)', NULL, '{"actor":"Ada","cost":{"epsilon (pure)":"2","renyi:21.9845371697538 (renyi)":"0.0002748067146219237543575131255124688324"},"description":{"adjacency":"add-remove","mechanism":"Gaussian(200.0)","version":1},"key":"one Gaussian(200.0)","kind":"granted","previous":"902a4ce38fec8d0f04c9dc3297bc13f66555b8be5845fe0eb40fe9898bde9c80","scope":"union","sequence":6,"time":"2026-11-24T05:31:58.114678Z","version":2}', '387b6155fcb5fa0e03cc37500f954b979e8efab2d1e6171cae8cc0b968c37001');
INSERT INTO public.entry VALUES ('union', 7, 'union', NULL, 6, '{"actor":"Ada","attempt":"4cdc2a8d08eed2852855437470bac543d70226780134357caed96de482b93703","kind":"redeemed","previous":"387b6155fcb5fa0e03cc37500f954b979e8efab2d1e6171cae8cc0b968c37001","redeems":6,"scope":"union","sequence":7,"time":"2026-11-24T05:31:58.115634Z","version":2}', '1f402bb883dfe28bb0a5130ad95a904a402a6474aae412d0c08e6aeb4fd141a0');
INSERT INTO public.entry VALUES ('menu', 1, 'menu', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"member 1":"8","member 2":"206"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","alternatives":[{"member 1":"8","member 2":"0"},{"member 1":"7","member 2":"8"},{"member 1":"6","member 2":"24"},{"member 1":"5","member 2":"48"},{"member 1":"4","member 2":"74"},{"member 1":"3","member 2":"104"},{"member 1":"2","member 2":"140"},{"member 1":"1","member 2":"170"},{"member 1":"0","member 2":"206"}],"filter":{"adjacency":"add-remove","delta":"1e-06","epsilon":"1.0","filter":"menu","menu":["RandomizedResponse(0.125)","RandomizedResponse(0.015625)"],"states":[[8,0],[7,8],[6,24],[5,48],[4,74],[3,104],[2,140],[1,170],[0,206]],"total_weight":0,"version":2,"weights":[]},"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"menu","sequence":1,"time":"2026-11-24T05:31:58.117511Z","version":2}', 'b775591130c88c8bc925f253e6f712c2ca654f198802e6dc417744217d01f086');
INSERT INTO public.entry VALUES ('menu', 2, 'menu', 'one RandomizedResponse(0.015625)', NULL, '{"actor":"Ada","cost":{"member 1":"0","member 2":"1"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.015625)","pure":"0.015625","version":1},"key":"one RandomizedResponse(0.015625)","kind":"granted","previous":"b775591130c88c8bc925f253e6f712c2ca654f198802e6dc417744217d01f086","scope":"menu","sequence":2,"time":"2026-11-24T05:31:58.121741Z","version":2}', 'd4aeb544d00fb083affac31ce76f047113b11759c1fe1e874c47472af2d70c7f');
INSERT INTO public.entry VALUES ('menu', 3, 'menu', NULL, 2, '{"actor":"Ada","attempt":"48082445b44507f68cb6e40409fc43e437ba3682b392a609d6af4aba04561eae","kind":"redeemed","previous":"d4aeb544d00fb083affac31ce76f047113b11759c1fe1e874c47472af2d70c7f","redeems":2,"scope":"menu","sequence":3,"time":"2026-11-24T05:31:58.123070Z","version":2}', '7ab6d118cbd01892badbadcf9da590ce6545f64132ee28b0077f8b2d4a35a6fb');
INSERT INTO public.entry VALUES ('menu', 4, 'menu', 'one RandomizedResponse(0.125)', NULL, '{"actor":"Ada","cost":{"member 1":"1","member 2":"0"},"description":{"adjacency":"add-remove","mechanism":"RandomizedResponse(0.125)","pure":"0.125","version":1},"key":"one RandomizedResponse(0.125)","kind":"granted","previous":"7ab6d118cbd01892badbadcf9da590ce6545f64132ee28b0077f8b2d4a35a6fb","scope":"menu","sequence":4,"time":"2026-11-24T05:31:58.128754Z","version":2}', '184968da9f4056b0719a5d2bf1dbd96590b4d3ab72a9ae2e0ebcd1119297ec7a');
INSERT INTO public.entry VALUES ('menu', 5, 'menu', NULL, 4, '{"actor":"Ada","attempt":"0098cc1e9a49cb8a2d2fb4e2e71116f6311c2f29cb2441eca754620655bcc663","kind":"redeemed","previous":"184968da9f4056b0719a5d2bf1dbd96590b4d3ab72a9ae2e0ebcd1119297ec7a","redeems":4,"scope":"menu","sequence":5,"time":"2026-11-24T05:31:58.132891Z","version":2}', 'dd31b893d48fddc33355876d904e2a319078b20bc11c9adf5911f3bf53a4d9ed');
INSERT INTO public.entry VALUES ('zcdp', 9, 'zcdp/health', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"delta":"0","rho":"0.01"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"delta":"0/1","filter":"concentrated","rho":"1/100","version":2},"version":1}},"kind":"opened","previous":"9d33b8861832043eed2df99e943bf12967b44a95bca9c2b4d2f4cd9706d373ef","scope":"zcdp/health","sequence":9,"time":"2026-11-24T05:31:58.142746Z","version":2}', '885c6f40425e6a00b24d5a2d2fdc0fd5367dd9edcd6a1c27bf695d7330da4327');
INSERT INTO public.entry VALUES ('zcdp', 10, 'zcdp/wards', NULL, NULL, '{"actor":"Grace","definition":{"caps":null,"kind":"partition"},"description":{"budget":{"adjacency":"add-remove","filter":null,"version":1}},"kind":"opened","previous":"885c6f40425e6a00b24d5a2d2fdc0fd5367dd9edcd6a1c27bf695d7330da4327","scope":"zcdp/wards","sequence":10,"time":"2026-11-24T05:31:58.148516Z","version":2}', 'ad322230bb0a9b04416a274f1eb992eb572c2f680da8706a63693814fbe0fba8');
INSERT INTO public.entry VALUES ('zcdp', 11, 'zcdp/wards/north', NULL, NULL, '{"actor":"Grace","definition":{"caps":null,"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":null,"version":1}},"kind":"opened","previous":"ad322230bb0a9b04416a274f1eb992eb572c2f680da8706a63693814fbe0fba8","scope":"zcdp/wards/north","sequence":11,"time":"2026-11-24T05:31:58.150820Z","version":2}', 'c88568f2fb6d2325d9902c1c192ca6b01412cb5cc08deef0101117251aa700f6');
INSERT INTO public.entry VALUES ('zcdp', 12, 'zcdp/wards/south', NULL, NULL, '{"actor":"Grace","definition":{"caps":null,"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":null,"version":1}},"kind":"opened","previous":"c88568f2fb6d2325d9902c1c192ca6b01412cb5cc08deef0101117251aa700f6","scope":"zcdp/wards/south","sequence":12,"time":"2026-11-24T05:31:58.155172Z","version":2}', '1a19ceb1ee516bd8072816d968afb881d48ea339581e2f65a1b3eeadafecbeee');
INSERT INTO public.entry VALUES ('pure', 6, 'pure/visits', NULL, NULL, '{"actor":"Grace","cost":{"epsilon":"0.02"},"definition":{"caps":{"epsilon":"0.01"},"kind":"slots","slots":2},"description":{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/100","filter":"pure","version":2},"version":1},"mechanism":"Curators(count=2, filter=PureFilter(epsilon=Fraction(1, 100)), adjacency=<Adjacency.ADD_REMOVE: ''add-remove''>)"},"kind":"opened","previous":"9ff9694d1b3694cf72f8f361d1b5a632c33499a81d03e2749721b13bb05ea8c3","scope":"pure/visits","sequence":6,"time":"2026-11-24T05:31:58.159562Z","version":2}', '8be81106d9d6a55afa64dbb150fcba41918d87575510c7cdf7da3333c84e3e56');
INSERT INTO public.entry VALUES ('pure', 7, 'pure/visits/ada', 'the first', NULL, '{"actor":"Ada","definition":{"caps":null,"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/100","filter":"pure","version":2},"version":1}},"key":"the first","kind":"opened","previous":"8be81106d9d6a55afa64dbb150fcba41918d87575510c7cdf7da3333c84e3e56","scope":"pure/visits/ada","sequence":7,"time":"2026-11-24T05:31:58.161679Z","version":2}', 'cb66185ee4133ee33fec6d76ef326eede971559b7db7b00410b9407acfb15804');
INSERT INTO public.entry VALUES ('yearly', 1, 'yearly', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"epsilon":"0.5"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/2","filter":"pure","version":2},"renew":"year","version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"yearly","sequence":1,"time":"2026-11-24T05:31:58.164476Z","version":2}', '9818da79e6b2ec93e52330587ecd542f7eb650d46a77a50d72db0b1349fbd40a');
INSERT INTO public.entry VALUES ('planned', 1, 'planned', NULL, NULL, '{"actor":"Grace","definition":{"caps":{"epsilon":"1"},"kind":"filter"},"description":{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/1","filter":"pure","version":2},"schedule":[["RandomizedResponse(0.125)",3]],"version":1}},"kind":"opened","previous":"0000000000000000000000000000000000000000000000000000000000000000","scope":"planned","sequence":1,"time":"2026-11-24T05:31:58.168535Z","version":2}', 'f0d61aa333e3e418f60613a87e26d908b8b71b2c28de7bf024cdd953788053cb');
INSERT INTO public.entry VALUES ('zcdp', 13, 'zcdp/wards/north', 'census zcdp/wards/north', NULL, '{"actor":"Ada","cost":{"delta":"0","rho":"0.002"},"description":{},"key":"census zcdp/wards/north","kind":"granted","previous":"1a19ceb1ee516bd8072816d968afb881d48ea339581e2f65a1b3eeadafecbeee","scope":"zcdp/wards/north","sequence":13,"time":"2026-11-24T05:31:58.170343Z","version":2}', '5a9bfe60a38e94e3ce2d80fbfd20aadb7ad21f5f4e34a4174cf8c5e2cac528a8');
INSERT INTO public.entry VALUES ('zcdp', 14, 'zcdp/wards/south', 'census zcdp/wards/south', NULL, '{"actor":"Ada","cost":{"delta":"0","rho":"0.002"},"description":{},"key":"census zcdp/wards/south","kind":"granted","previous":"5a9bfe60a38e94e3ce2d80fbfd20aadb7ad21f5f4e34a4174cf8c5e2cac528a8","scope":"zcdp/wards/south","sequence":14,"time":"2026-11-24T05:31:58.171576Z","version":2}', 'd6f4c46f6e21f0bfa909c1f056eb097774d10602a4c56f58540b4a8578c9e1f0');
INSERT INTO public.entry VALUES ('zcdp', 15, 'zcdp/health', 'ends', NULL, '{"actor":"Grace","key":"ends","kind":"closed","previous":"d6f4c46f6e21f0bfa909c1f056eb097774d10602a4c56f58540b4a8578c9e1f0","scope":"zcdp/health","sequence":15,"time":"2026-11-24T05:31:58.172600Z","version":2}', 'bc9ac3db5162a5f81b57e054663086801179238579a4e7ddac16f9dd62e8d71f');


--
-- Data for Name: migration; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.migration VALUES (1, 'scopes, balances and entries');
INSERT INTO public.migration VALUES (2, 'rounds of schedules, attempts of redemptions');
INSERT INTO public.migration VALUES (3, 'entries by scope');
INSERT INTO public.migration VALUES (4, 'times that never run back');
INSERT INTO public.migration VALUES (5, 'scopes that renew');


--
-- Data for Name: scope; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.scope VALUES ('pure', 'pure', 'filter', '{"epsilon":"0.3"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"epsilon":"3/10","filter":"pure","version":2},"version":1}}', 1);
INSERT INTO public.scope VALUES ('basic', 'basic', 'filter', '{"delta":"0.000001","epsilon":"1"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"delta":"1e-06","epsilon":"1/1","filter":"basic","version":2},"version":1}}', 1);
INSERT INTO public.scope VALUES ('advanced', 'advanced', 'filter', '{"delta":"0.0000001","epsilon squared":"0.0346823958149991569087413655847401296718"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"delta":"1e-06","epsilon":"1.0","filter":"advanced","slack":"9e-07","version":2},"version":1}}', 1);
INSERT INTO public.scope VALUES ('zcdp', 'zcdp', 'filter', '{"delta":"0","rho":"0.02435599893576366"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"delta":"0.0","filter":"concentrated","rho":"0.02435599893576366","version":2},"version":1}}', 1);
INSERT INTO public.scope VALUES ('renyi', 'renyi', 'filter', '{"renyi:21.9845371697538":"0.5354553638895618"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"budget":"0.5354553638895618","filter":"renyi","order":"21.9845371697538","version":2},"version":1}}', 1);
INSERT INTO public.scope VALUES ('gdp', 'gdp', 'filter', '{"mu squared":"0.0560289638252584190911750121492836"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"filter":"gaussian","mu":"0.23670438066343094","version":2},"version":1}}', 1);
INSERT INTO public.scope VALUES ('union', 'union', 'filter', '{"epsilon (pure)":"1000000000000000000000000000000000000","renyi:21.9845371697538 (renyi)":"1000000000000000000000000000000000000"}', NULL, '{"budget":{"adjacency":"add-remove","alternatives":[{"epsilon (pure)":"1"},{"renyi:21.9845371697538 (renyi)":"0.5354553638895618"}],"filter":{"filter":"union","filters":[{"epsilon":"1.0","filter":"pure","version":2},{"budget":"0.5354553638895618","filter":"renyi","order":"21.9845371697538","version":2}],"shares":["0.0","1e-06"],"version":2},"version":1}}', 1);
INSERT INTO public.scope VALUES ('menu', 'menu', 'filter', '{"member 1":"8","member 2":"206"}', NULL, '{"budget":{"adjacency":"add-remove","alternatives":[{"member 1":"8","member 2":"0"},{"member 1":"7","member 2":"8"},{"member 1":"6","member 2":"24"},{"member 1":"5","member 2":"48"},{"member 1":"4","member 2":"74"},{"member 1":"3","member 2":"104"},{"member 1":"2","member 2":"140"},{"member 1":"1","member 2":"170"},{"member 1":"0","member 2":"206"}],"filter":{"adjacency":"add-remove","delta":"1e-06","epsilon":"1.0","filter":"menu","menu":["RandomizedResponse(0.125)","RandomizedResponse(0.015625)"],"states":[[8,0],[7,8],[6,24],[5,48],[4,74],[3,104],[2,140],[1,170],[0,206]],"total_weight":0,"version":2,"weights":[]},"version":1}}', 1);
INSERT INTO public.scope VALUES ('zcdp', 'zcdp/health', 'filter', '{"delta":"0","rho":"0.01"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"delta":"0/1","filter":"concentrated","rho":"1/100","version":2},"version":1}}', 9);
INSERT INTO public.scope VALUES ('zcdp', 'zcdp/wards', 'partition', '{}', NULL, '{"budget":{"adjacency":"add-remove","filter":null,"version":1}}', 10);
INSERT INTO public.scope VALUES ('zcdp', 'zcdp/wards/north', 'filter', '{}', NULL, '{"budget":{"adjacency":"add-remove","filter":null,"version":1}}', 11);
INSERT INTO public.scope VALUES ('zcdp', 'zcdp/wards/south', 'filter', '{}', NULL, '{"budget":{"adjacency":"add-remove","filter":null,"version":1}}', 12);
INSERT INTO public.scope VALUES ('pure', 'pure/visits', 'slots', '{"epsilon":"0.01"}', 2, '{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/100","filter":"pure","version":2},"version":1},"mechanism":"Curators(count=2, filter=PureFilter(epsilon=Fraction(1, 100)), adjacency=<Adjacency.ADD_REMOVE: ''add-remove''>)"}', 6);
INSERT INTO public.scope VALUES ('pure', 'pure/visits/ada', 'filter', '{"epsilon":"0.01"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/100","filter":"pure","version":2},"version":1}}', 7);
INSERT INTO public.scope VALUES ('yearly', 'yearly', 'filter', '{"epsilon":"0.5"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/2","filter":"pure","version":2},"renew":"year","version":1}}', 1);
INSERT INTO public.scope VALUES ('planned', 'planned', 'filter', '{"epsilon":"1"}', NULL, '{"budget":{"adjacency":"add-remove","filter":{"epsilon":"1/1","filter":"pure","version":2},"schedule":[["RandomizedResponse(0.125)",3]],"version":1}}', 1);


--
-- Name: balance balance_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.balance
    ADD CONSTRAINT balance_pkey PRIMARY KEY (root, path);


--
-- Name: entry entry_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (root, sequence);


--
-- Name: migration migration_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (number);


--
-- Name: scope scope_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.scope
    ADD CONSTRAINT scope_pkey PRIMARY KEY (root, path);


--
-- Name: charge_is_redeemed_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX charge_is_redeemed_once ON public.entry USING btree (root, redeems) WHERE (redeems IS NOT NULL);


--
-- Name: entry_of_scope; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entry_of_scope ON public.entry USING btree (root, scope COLLATE "C", sequence);


--
-- Name: key_is_used_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX key_is_used_once ON public.entry USING btree (root, key) WHERE (key IS NOT NULL);


--
-- Name: scope_by_path; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX scope_by_path ON public.scope USING btree (root, path COLLATE "C");


--
-- PostgreSQL database dump complete
--

\unrestrict n8eNIqOjhfBIuQDQbeMrTLwEgmaRrJgEblRG4AgtF4QyxTdZgfIaJKI6k2UaEEX

