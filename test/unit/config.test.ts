import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readConfig, showSettings } from '../../src/base/config.ts';
import { workerEnvironment } from '../../src/cli/processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

const file = join(folder, 'database_url');
const url = 'postgres://sluice:hidden@postgres/sluice';

test('NAME_FILE names a file that holds the value of NAME; a line break at its end is not part of it', () => {
  for (const end of ['', '\n', '\r\n']) {
    writeFileSync(file, `${url}${end}`);
    expect(readConfig({ DATABASE_URL: '', DATABASE_URL_FILE: file }).databaseUrl).toBe(url);
  }
  writeFileSync(join(folder, 'port'), '81\n');
  expect(readConfig({ PORT_FILE: join(folder, 'port') }).port).toBe(81);
});

test('NAME and NAME_FILE together, and a file that cannot be read, are refused by name and without the value', () => {
  writeFileSync(file, url);
  expect(() => readConfig({ DATABASE_URL: url, DATABASE_URL_FILE: file })).toThrow(
    /^DATABASE_URL: set DATABASE_URL or DATABASE_URL_FILE, not both$/,
  );
  expect(() => readConfig({ DATABASE_URL_FILE: join(folder, 'none') })).toThrow(
    /^DATABASE_URL: the file that DATABASE_URL_FILE names cannot be read \(ENOENT\)$/,
  );
  writeFileSync(file, 'mysql://hidden');
  expect(() => readConfig({ DATABASE_URL_FILE: file })).toThrow(/^DATABASE_URL: (?!.*hidden)/);
});

test('a flag wins over the file, and so does what a worker process is given', () => {
  writeFileSync(file, url);
  const given = { DATABASE_URL_FILE: file, DATA_DIR: folder };
  expect(readConfig(given, { DATABASE_URL: 'postgres://flag' }).databaseUrl).toBe('postgres://flag');
  const theirs = workerEnvironment(given, readConfig(given), 'postgres://provided');
  expect(readConfig(theirs).databaseUrl).toBe('postgres://provided');
});

test('TRUST_PROXY has addresses and networks, and nothing that could be mistaken for one', () => {
  expect(readConfig({}).trustProxy).toEqual([]);
  expect(readConfig({ TRUST_PROXY: '127.0.0.1, 10.0.0.0/8,fd00::/8' }).trustProxy).toEqual([
    '127.0.0.1',
    '10.0.0.0/8',
    'fd00::/8',
  ]);
  for (const wrong of ['true', 'proxy.internal', '10.0.0.0/33', '127.0.0.1;10.0.0.1'])
    expect(() => readConfig({ TRUST_PROXY: wrong })).toThrow(
      /^TRUST_PROXY: must be IP addresses or networks/,
    );
});

test('of sslmode every value that asks for TLS verifies the certificate; uselibpqcompat keeps the meaning of libpq', () => {
  const read = (query: string) => readConfig({ DATABASE_URL: `${url}?${query}` }).databaseUrl;
  for (const mode of ['prefer', 'require', 'verify-ca', 'verify-full'])
    expect(read(`a=b&sslmode=${mode}&sslrootcert=/ca`)).toBe(
      `${url}?a=b&sslmode=verify-full&sslrootcert=/ca`,
    );
  for (const query of ['sslmode=disable', 'sslmode=no-verify', 'uselibpqcompat=true&sslmode=require'])
    expect(read(query)).toBe(`${url}?${query}`);
});

test('PERSONAL_KEY is refused by name and without its value if it is short, and never shown', () => {
  const key = 'a-secret-of-thirty-two-characters';
  expect(readConfig({ PERSONAL_KEY: key }).personalKey).toBe(key);
  expect(JSON.stringify(showSettings({ PERSONAL_KEY: key }, {}))).not.toContain(key);
  expect(() => readConfig({ PERSONAL_KEY: 'hidden' })).toThrow(/^PERSONAL_KEY: must be (?!.*hidden)/);
});

test('RATE_LIMIT takes a number of requests in a time, and none if it is empty', () => {
  const of = (limit: string) => readConfig({ RATE_LIMIT: limit }).rateLimit;
  expect([of(''), of('10/1s'), of('600/1m')]).toEqual([
    null,
    { count: 10, windowMs: 1_000 },
    { count: 600, windowMs: 60_000 },
  ]);
  for (const wrong of ['10', '0/1s', '10/s', '10/25h', '-1/1s', '10/1s/2', 'many'])
    expect(() => of(wrong), wrong).toThrow(/^RATE_LIMIT: must be a number in a time from 1s to 24h/);
});

test('LAKE_EVERY takes seconds, minutes and hours, up to a day, or nothing', () => {
  const of = (every: string) => readConfig({ LAKE_EVERY: every }).lakeEveryMs;
  expect(['', '30s', '15m', '24h'].map(of)).toEqual([null, 30_000, 900_000, 86_400_000]);
  for (const every of ['0s', '25h', '1', '1d', '1.5h', '-1s'])
    expect(() => of(every)).toThrow(
      /^LAKE_EVERY: must be a time from 1s to 24h, such as 30s, 15m or 1h, not /,
    );
});
