import { afterEach, expect, test } from 'vitest';
import { createPool } from '../../src/postgres/pool.ts';
import { createCertificates } from '../support/servers/certificates.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { startTlsPostgres } from '../support/servers/postgres-tls.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

test('DATABASE_URL with sslmode=require verifies the certificate of the server, as with verify-full', async () => {
  const [certificates, others] = await Promise.all([createCertificates(), createCertificates()]);
  const database = await createTestDatabase();
  const tls = await startTlsPostgres(database.url, certificates);
  cleanups.push(
    () => Promise.all([certificates.remove(), others.remove()]),
    () => database.drop(),
    () => tls.stop(),
  );
  const ask = async (host: string, query: string): Promise<unknown> => {
    const url = new URL(database.url);
    url.host = `${host}:${tls.port}`;
    url.search = query;
    const pool = createPool({ url: url.href, max: 1, applicationName: 'test' });
    pool.on('error', () => undefined);
    try {
      return (await pool.query('select 1 as one')).rows[0];
    } catch (error) {
      return (error as { readonly code?: string }).code;
    } finally {
      await pool.end();
    }
  };
  const { caFile } = certificates;
  for (const mode of ['verify-full', 'require']) {
    const before = tls.encrypted;
    expect(await ask('localhost', `sslmode=${mode}&sslrootcert=${caFile}`)).toEqual({ one: 1 });
    expect(tls.encrypted).toBe(before + 1);
    // Three faults: the authority is missing, the authority is wrong, and the host name does not
    // match.
    expect(await ask('localhost', `sslmode=${mode}`)).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
    expect(await ask('localhost', `sslmode=${mode}&sslrootcert=${others.caFile}`)).toMatch(/CERT|SIGNATURE/);
    expect(await ask('127.0.0.1', `sslmode=${mode}&sslrootcert=${caFile}`)).toBe(
      'ERR_TLS_CERT_ALTNAME_INVALID',
    );
  }
  // The connection is encrypted, but the certificate is not verified.
  expect(await ask('localhost', 'sslmode=no-verify')).toEqual({ one: 1 });
});
