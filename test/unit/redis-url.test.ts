import { expect, test } from 'vitest';
import { readConfig } from '../../src/base/config.ts';
import { describeRedis, readRedisUrl } from '../../src/base/redis-url.ts';

const plain = {
  kind: 'server',
  tls: false,
  username: null,
  password: null,
  db: 0,
  family: null,
  sentinel: null,
};
const node = (host: string, port: number) => ({ host, port });

test('REDIS_URL names one server', () => {
  expect(readRedisUrl('redis://localhost')).toEqual({ ...plain, nodes: [node('localhost', 6379)] });
  expect(readRedisUrl('rediss://me:p%40ss:w@redis.example.com:7000/3?family=6')).toEqual({
    ...plain,
    nodes: [node('redis.example.com', 7000)],
    tls: true,
    username: 'me',
    password: 'p@ss:w',
    db: 3,
    family: 6,
  });
  expect(readRedisUrl('redis://:secret@[::1]:1/?db=2&family=0')).toMatchObject({
    nodes: [node('::1', 1)],
    username: null,
    password: 'secret',
    db: 2,
    family: null,
  });
});

test('REDIS_URL names a master by its sentinels, which have their own password', () => {
  const url = 'redis+sentinel://u:p@s1:1,s2/main?db=4&sentinel_username=su&sentinel_password=s%26p';
  expect(readRedisUrl(url)).toEqual({
    ...plain,
    kind: 'sentinel',
    nodes: [node('s1', 1), node('s2', 26379)],
    username: 'u',
    password: 'p',
    db: 4,
    sentinel: { name: 'main', username: 'su', password: 's&p' },
  });
});

test('REDIS_URL names a cluster by some of its nodes', () => {
  expect(readRedisUrl('rediss+cluster://:p@a:1,b')).toEqual({
    ...plain,
    kind: 'cluster',
    nodes: [node('a', 1), node('b', 6379)],
    tls: true,
    password: 'p',
  });
});

test('the description of a REDIS_URL has no password', () => {
  const descriptions = [
    'redis://me:hidden@[::1]:1/3',
    'redis+sentinel://:hidden@a:1,b/main?sentinel_password=hidden',
    'redis+cluster://:hidden@a:1,b',
  ].map((url) => describeRedis(readRedisUrl(url)));
  expect(descriptions).toEqual(['[::1]:1', 'main (sentinels a:1, b:26379)', 'a:1, b:6379 (cluster)']);
});

test.each([
  ['http://:hidden@redis', /is wanted/],
  ['redis://:hidden@a,b', /several hosts make sense with/],
  ['redis+cluster://a,,b', /each host is wanted/],
  ['redis://a:0', /a port is/],
  ['redis://:hidden%@a', /a % is written %25/],
  ['redis://a/hidden', /the database is a whole number/],
  ['redis+sentinel://a:1', /name of the master is wanted/],
  ['redis+cluster://a/1', /no databases but 0/],
  ['redis://a?sentinel_password=hidden', /unknown parameter "sentinel_password"; there are db, family/],
  ['redis://a?db=1&db=2', /db is given twice/],
  ['redis://a?family=5', /family is 0, 4 or 6/],
])('the URL %s is refused with the rule, and without its secret', (url, rule) => {
  const error = (() => {
    try {
      return readConfig({ REDIS_URL: url });
    } catch (caught) {
      return caught;
    }
  })() as Error;
  expect(error.name).toBe('ConfigError');
  expect(error.message).toMatch(rule);
  expect(error.message).toMatch(/^REDIS_URL: /);
  expect(error.message).not.toContain('hidden');
});

test('REDIS_TLS_CA requires a REDIS_URL with TLS and a file with certificates', () => {
  const readSettings = (REDIS_URL: string, REDIS_TLS_CA: string) => () =>
    readConfig({ REDIS_URL, REDIS_TLS_CA });
  expect(readSettings('redis://a', 'ca.pem')).toThrow(/^REDIS_TLS_CA: it means nothing without/);
  expect(readSettings('', 'ca.pem')).toThrow(/^REDIS_TLS_CA: it means nothing without/);
  expect(readSettings('rediss://a', '/nowhere/ca.pem')).toThrow(
    /^REDIS_TLS_CA: the file cannot be read \(ENOENT\)/,
  );
  expect(readSettings('rediss+cluster://a', 'package.json')).toThrow(
    /^REDIS_TLS_CA: the file holds no certificate/,
  );
});
