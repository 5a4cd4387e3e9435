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

test('NAME_FILE names a file with the value of NAME, without a final line break', () => {
  for (const end of ['', '\n', '\r\n']) {
    writeFileSync(file, `${url}${end}`);
    expect(readConfig({ DATABASE_URL: '', DATABASE_URL_FILE: file }).databaseUrl).toBe(url);
  }
  writeFileSync(join(folder, 'port'), '81\n');
  expect(readConfig({ PORT_FILE: join(folder, 'port') }).port).toBe(81);
});

test('NAME with NAME_FILE and an unreadable file are refused without the value', () => {
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

test('a flag and the settings of a worker process both override the file', () => {
  writeFileSync(file, url);
  const processEnv = { DATABASE_URL_FILE: file, DATA_DIR: folder };
  expect(readConfig(processEnv, { DATABASE_URL: 'postgres://flag' }).databaseUrl).toBe('postgres://flag');
  const workerEnv = workerEnvironment(processEnv, readConfig(processEnv), 'postgres://provided');
  expect(readConfig(workerEnv).databaseUrl).toBe('postgres://provided');
});

test('TRUST_PROXY accepts addresses and networks, and refuses everything else', () => {
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

test('every sslmode with TLS verifies the certificate, unless uselibpqcompat is set', () => {
  const databaseUrl = (query: string) => readConfig({ DATABASE_URL: `${url}?${query}` }).databaseUrl;
  for (const mode of ['prefer', 'require', 'verify-ca', 'verify-full'])
    expect(databaseUrl(`a=b&sslmode=${mode}&sslrootcert=/ca`)).toBe(
      `${url}?a=b&sslmode=verify-full&sslrootcert=/ca`,
    );
  for (const query of ['sslmode=disable', 'sslmode=no-verify', 'uselibpqcompat=true&sslmode=require'])
    expect(databaseUrl(query)).toBe(`${url}?${query}`);
});

test('a short PERSONAL_KEY is refused without its value, and a key is never shown', () => {
  const key = 'a-secret-of-thirty-two-characters';
  expect(readConfig({ PERSONAL_KEY: key }).personalKey).toBe(key);
  expect(JSON.stringify(showSettings({ PERSONAL_KEY: key }, {}))).not.toContain(key);
  expect(() => readConfig({ PERSONAL_KEY: 'hidden' })).toThrow(/^PERSONAL_KEY: must be (?!.*hidden)/);
});

test('RATE_LIMIT is a number of requests in a time, and no limit if it is empty', () => {
  const rateLimit = (limit: string) => readConfig({ RATE_LIMIT: limit }).rateLimit;
  expect([rateLimit(''), rateLimit('10/1s'), rateLimit('600/1m')]).toEqual([
    null,
    { count: 10, windowMs: 1_000 },
    { count: 600, windowMs: 60_000 },
  ]);
  for (const wrong of ['10', '0/1s', '10/s', '10/25h', '-1/1s', '10/1s/2', 'many'])
    expect(() => rateLimit(wrong), wrong).toThrow(/^RATE_LIMIT: must be a number in a time from 1s to 24h/);
});

test('LAKE_EVERY is a time from 1 second to 24 hours, or no time if it is empty', () => {
  const lakeEvery = (every: string) => readConfig({ LAKE_EVERY: every }).lakeEveryMs;
  expect(['', '30s', '15m', '24h'].map(lakeEvery)).toEqual([null, 30_000, 900_000, 86_400_000]);
  for (const every of ['0s', '25h', '1', '1d', '1.5h', '-1s'])
    expect(() => lakeEvery(every)).toThrow(
      /^LAKE_EVERY: must be a time from 1s to 24h, such as 30s, 15m or 1h, not /,
    );
});
