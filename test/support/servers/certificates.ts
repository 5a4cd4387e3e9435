import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * A certificate, its key, and the certificate of the authority that signed it. Each exists as a
 * file and as a string.
 */
export interface TestCertificates {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  remove(): Promise<void>;
}

/** Creates a certificate. Default: for `localhost` only. */
export async function createCertificates(names = 'DNS:localhost'): Promise<TestCertificates> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-certificates-'));
  const file = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): Promise<unknown> => run('openssl', args, { cwd: folder });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  await writeFile(file('names'), `subjectAltName=${names}\n`);
  const request = (name: string, owner: string, ...out: string[]) =>
    openssl('req', ...newKey, '-subj', `/CN=${name}`, '-keyout', `${owner}.key`, '-out', ...out);
  await request('test authority', 'ca', 'ca.pem', '-x509');
  await request('localhost', 'server', 'server.csr');
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names'];
  await openssl('x509', '-req', '-in', 'server.csr', ...signing, '-out', 'server.pem');
  return {
    caFile: file('ca.pem'),
    certFile: file('server.pem'),
    keyFile: file('server.key'),
    ca: await readFile(file('ca.pem'), 'utf8'),
    cert: await readFile(file('server.pem'), 'utf8'),
    key: await readFile(file('server.key'), 'utf8'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
