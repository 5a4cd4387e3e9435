import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listTarball, type Packed, packPackage } from '../support/servers/package.ts';
import { SluiceProcess } from '../support/servers/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { awaitGone, descendants } from './processes.ts';
import { call, jobEnded, upload, usersCsv } from './service.ts';

/** Supported versions of Node: the newest of each release line when the list was written. */
const nodes: Readonly<Record<string, string>> = { 20: '20.20.2', 22: '22.23.3', 24: '24.21.0' };

/**
 * The complete demo takes 15 s on two cores. A small demo exercises the same parts of the package.
 */
const whole = process.env['SLUICE_LARGE'] === '1';
const smallDemo = ['--users', '2000', '--companies', '50', '--events', '500'];

const mebibyte = 1024 * 1024;
const apiKey = 'a-key-of-the-stranger-0123456789';

let folder: string;
let packed: Packed;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-package-'));
  await chmod(folder, 0o755);
  await mkdir(join(folder, 'packed'));
  packed = await packPackage(join(folder, 'packed'));
});
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 40, retryDelay: 50 }));

describe('npm pack', () => {
  // proves: package
  test('npm pack makes a tarball of less than 6 MiB with the program, its static files and the licences, and nothing else', async () => {
    expect((await stat(packed.tarball)).size).toBeLessThan(6 * mebibyte);
    const files = await listTarball(packed.tarball);
    const bundled = /^dist\/(?:bundle|console)\//;
    const others = /^(?:sql|src\/capabilities\/[a-z]+\/sql|docs\/(?:samples|schemas))\//;
    expect(files.filter((path) => !bundled.test(path) && !others.test(path))).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'dist/openapi.json',
      'package.json',
    ]);
    for (const part of ['bundle', 'console'])
      expect(files).toContain(`dist/${part}/THIRD-PARTY-LICENSES.txt`);
    expect(files.filter((path) => /\.map$|\.test\.|\.tsbuildinfo$/.test(path))).toEqual([]);
  });

  // proves: package
  test('npm pack leaves package.json unchanged, and its tarball requires no bundled package', async () => {
    const [before, after] = packed.manifests;
    expect(after).toBe(before);
    const { stdout } = await promisify(execFile)('tar', ['-xzOf', packed.tarball, 'package/package.json']);
    const published = JSON.parse(stdout) as Record<string, unknown>;
    const { name, version, optionalDependencies } = JSON.parse(before) as typeof published;
    expect(published).toMatchObject({ name, version, optionalDependencies });
    expect(published['dependencies']).toEqual({});
    expect(published['bin']).toEqual({ sluice: 'dist/bundle/main.js' });
    for (const field of ['private', 'scripts', 'devDependencies']) expect(published[field]).toBeUndefined();
  });
});

const { PATH = '', NODE_EXTRA_CA_CERTS } = process.env;
const major = /^v(\d+)/.exec(process.version)?.[1] ?? '';
const registry = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).stdout.trim();
const reached = spawnSync('npm', ['view', 'node', 'name', '--fetch-retries=0', '--fetch-timeout=20000']);
const offline = reached.status !== 0;
if (offline) {
  process.stderr.write('The package is not installed as strangers do: npm reaches no registry.\n');
}

/**
 * If root runs the test, the commands run under an ordinary account without a clone, an npm cache
 * or settings. Otherwise, the commands run under the current account.
 */
const account = process.geteuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

describe.skipIf(offline)('a stranger with an empty folder', () => {
  let installed: string;
  const binaries = new Map<string, string>([[major, dirname(process.execPath)]]);
  const running: SluiceProcess[] = [];

  const runAs = (node: string, command: string, args: readonly string[]): SluiceProcess => {
    const child = spawn(command, args, {
      cwd: installed,
      ...account,
      env: {
        PATH: `${binaries.get(node)}${delimiter}${PATH}`,
        HOME: installed,
        TMPDIR: installed,
        npm_config_registry: registry,
        ...(NODE_EXTRA_CA_CERTS !== undefined && { NODE_EXTRA_CA_CERTS }),
        PORT: '0',
        WORKERS: '1',
        API_KEY: apiKey,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Starts a process group, as a shell does, so that signals also reach the children of npx.
      detached: true,
    });
    const started = new SluiceProcess(`${command} on Node ${node}`, child);
    running.push(started);
    return started;
  };

  const getNode = async (version: string): Promise<void> => {
    const name = `node-${process.platform}-${process.arch}`;
    const prefix = join(folder, `node-${version}`);
    await mkdir(prefix);
    const options = ['--prefix', prefix, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
    await promisify(execFile)('npm', ['install', ...options, `${name}@${nodes[version]}`], { cwd: prefix });
    binaries.set(version, join(prefix, 'node_modules', name, 'bin'));
  };

  beforeAll(async () => {
    installed = join(folder, 'stranger');
    await mkdir(installed);
    if (account.uid !== undefined) await chown(installed, account.uid, account.gid);
    const others = (whole ? Object.keys(nodes) : ['20', '24']).filter((each) => each !== major);
    const install = runAs(major, 'npm', ['install', packed.tarball]);
    await Promise.all([waitFor('npm install', () => install.ending), ...others.map(getNode)]);
    expect(install.ending, install.output).toBe('exit code 0');
  });

  afterEach(() => {
    for (const { pid, ending } of running.splice(0)) if (ending === null) process.kill(-pid, 'SIGKILL');
  });

  // proves: package
  test.each(whole ? ['20', '22'] : ['20'])(
    'npx sluice start loads a file on Node %s, and Ctrl-C stops everything in order',
    async (node) => {
      const service = runAs(node, 'npx', ['sluice', 'start']);
      const [, url = ''] = await service.prints(/listens on (http:\S+)/);
      const processes = await descendants(service.pid);
      // A sandbox, which is a separate program of the package, reads the file.
      const inspected = await call(url, apiKey, '/v1/imports/inspect', {
        method: 'POST',
        body: usersCsv(50, node),
        headers: { 'content-type': 'text/csv' },
      });
      expect(await inspected.json()).toMatchObject({ records: 50, read_as: { format: 'csv' } });
      const { job_id: jobId } = await upload(url, apiKey, usersCsv(500, node));
      expect(await jobEnded(url, apiKey, jobId)).toMatchObject({
        status: 'completed',
        counts: { read: 500 },
      });
      for (const path of ['/docs/static/swagger-ui-bundle.js', '/console', '/metrics']) {
        expect((await call(url, null, path)).status, path).toBe(200);
      }
      process.kill(-service.pid, 'SIGINT');
      await awaitGone(processes);
      await waitFor('the last line', () => service.output.includes('"msg":"stopped"'));
    },
  );

  // proves: package
  test.each(whole ? ['22', '24'] : ['24'])(
    'npx sluice import makes a database and loads a file on Node %s',
    async (node) => {
      await writeFile(join(installed, 'users.csv'), usersCsv(50), { mode: 0o644 });
      const imported = runAs(node, 'npx', ['sluice', 'import', 'users.csv', '--data-dir', `data-${node}`]);
      await waitFor('the import', () => imported.ending);
      expect(imported.ending, imported.output).toBe('exit code 0');
      expect(imported.output).toMatch(/^ *50 +50 +0 /m);
    },
  );

  // proves: package
  test('npx sluice demo runs to its end on Node 24', async () => {
    const startedAt = performance.now();
    const demo = runAs('24', 'npx', ['sluice', 'demo', ...(whole ? [] : smallDemo)]);
    await waitFor('the demo', () => demo.ending);
    expect(demo.ending, demo.output).toBe('exit code 0');
    expect(demo.output).toContain(whole ? '50,000 answered 202' : '500 answered 202');
    if (whole) process.stderr.write(`npx sluice demo: ${Math.round(performance.now() - startedAt)} ms\n`);
  });

  test('other programs import the API document and the schemas of files by the name of the package', async () => {
    const look = `import document from 'sluice/openapi.json' with { type: 'json' };
      import schema from 'sluice/schemas/segment.schema.json' with { type: 'json' };
      console.log(process.version, document.info.version, schema.title);`;
    const importing = runAs('24', 'node', ['--input-type=module', '-e', look]);
    await waitFor('the program', () => importing.ending);
    const { version } = JSON.parse(packed.manifests[0]) as { version: string };
    expect(importing.output).toBe(`v${nodes['24']} ${version} Segment\n`);
  });
});
