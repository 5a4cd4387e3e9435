import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../src/base/package-root.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers/postgres.ts';
import { type Finished, type RunOptions, runCli } from './cli.ts';

const sample = join(packageRoot, 'docs', 'samples', 'definitions.yaml');

interface Result {
  readonly environment: string;
  readonly dry_run: boolean;
  readonly written: boolean;
  readonly blocked_by: readonly string[];
  readonly changes: Readonly<
    Record<string, { added: string[]; changed: object[]; removed: string[]; unchanged: number }>
  >;
}

let dataDir: string;
let database: TestDatabase;
/**
 * Runs a command on a database server that is already running. Other tests start the embedded
 * server.
 */
const sluice = (args: readonly string[], options: RunOptions = {}): Promise<Finished> =>
  runCli([...args, '--data-dir', dataDir], { env: { DATABASE_URL: database.url }, ...options });
const definitions = (...args: string[]): Promise<Finished> => sluice(['definitions', ...args]);
const json = <T>({ stdout }: Finished): T => JSON.parse(stdout) as T;

async function file(name: string, text: string): Promise<string> {
  const path = join(dataDir, name);
  await writeFile(path, text);
  return path;
}

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-definitions-'));
  await sluice(['env', 'create', 'staging']);
});
afterAll(async () => {
  await database.drop();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 40, retryDelay: 50 });
});

describe('sluice definitions', () => {
  test('sluice definitions apply applies a file, and has nothing to do the second time', async () => {
    const first = json<Result>(await definitions('apply', sample, '--json'));
    expect(first).toMatchObject({ environment: 'default', dry_run: false, written: true, blocked_by: [] });
    expect(first.changes['surveys']).toEqual({
      added: ['nps', 'onboarding'],
      changed: [],
      removed: [],
      unchanged: 0,
    });
    const second = await definitions('apply', sample);
    expect(second.code).toBe(0);
    expect(second.stdout).toMatch(/^segments +0 +0 +0 +8$/m);
    expect(second.stdout).not.toMatch(/^[+~-] /m);
    expect(second.stderr).toContain('Nothing to do: environment default has these definitions already.');
    expect(json<Result>(await definitions('apply', sample, '--json')).written).toBe(false);
  });

  test('sluice definitions export writes a file that makes the same definitions elsewhere, in both formats', async () => {
    const yaml = await definitions('export');
    expect(yaml).toMatchObject({ code: 0, stderr: '' });
    const written = await definitions('export', '--format', 'json');
    expect(json(written)).toEqual(parse(yaml.stdout));
    const piped = await sluice(['definitions', 'apply', '-', '--env', 'staging', '--json'], {
      input: yaml.stdout,
    });
    expect(json<Result>(piped)).toMatchObject({ environment: 'staging', written: true });
    expect((await definitions('export', '--env', 'staging')).stdout).toBe(yaml.stdout);
    const path = await file('definitions.json', written.stdout);
    expect(json<Result>(await definitions('apply', path, '--json')).written).toBe(false);
  });
});
