import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/base/config.ts';
import { settings } from '../../src/base/settings.ts';
import {
  type ComposeFile,
  exampleVariables,
  makeSecrets,
  only,
  readCompose,
  readDockerfile,
  repository,
  type Service,
  withSecrets,
} from '../support/servers/compose.ts';

let variables: Record<string, string>;
let compose: ComposeFile;
let services: [string, Service][];
let ours: [string, Service][];
let folder: string;
let secrets: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-packaging-'));
  secrets = await makeSecrets(folder);
  variables = await exampleVariables();
  compose = await readCompose(variables);
  services = Object.entries(compose.services);
  ours = services.filter(([, { build }]) => build !== undefined);
});

afterAll(() => rm(folder, { recursive: true }));

describe('docker-compose.yml', () => {
  test('docker-compose.yml names only parts that exist, and waits for each in the right way', () => {
    for (const [, service] of services) {
      for (const network of service.networks) expect(Object.keys(compose.networks)).toContain(network);
      for (const volume of service.volumes ?? [])
        expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0]);
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
        const awaited = compose.services[other];
        const ends = awaited?.restart === 'no';
        expect(condition).toBe(ends ? 'service_completed_successfully' : 'service_healthy');
        if (!ends) expect(awaited?.healthcheck?.test, other).toBeDefined();
      }
    }
    const mounted = services.flatMap(([, { volumes = [] }]) => volumes.map((each) => each.split(':')[0]));
    expect([...new Set(mounted)].sort()).toEqual(Object.keys(compose.volumes).sort());
    const required = services.flatMap(([, service]) => service.secrets ?? []);
    expect([...new Set(required)].sort()).toEqual(Object.keys(compose.secrets).sort());
  });

  test('docker-compose.yml gives sluice the settings of compose.env, and they pass its check', () => {
    for (const [, { environment = {}, env_file }] of ours) {
      expect(env_file).toEqual(['compose.env']);
      const config = readConfig(withSecrets(environment, secrets));
      expect(config.storage).toEqual({ kind: 'folder', directory: '/data/files' });
      expect(config.databaseUrl).toMatch(/^postgres:\/\/sluice:\w{48}@postgres:5432\/sluice$/);
      expect(config.redisUrl).toMatch(/^redis:\/\/:\w{48}@redis:6379$/);
    }
  });

  test('docker-compose.yml runs only migrate, serve, work and cli, and cli sees every volume', () => {
    expect(ours.map(([name, { command }]) => [name, ...(command ?? [])])).toEqual([
      ['migrate', 'migrate'],
      ['serve', 'serve'],
      ['work', 'work'],
      ['cli', '--help'],
    ]);
    const mounted = (name: string) => compose.services[name]?.volumes ?? [];
    expect(mounted('cli')).toEqual(expect.arrayContaining(['serve', 'work'].flatMap(mounted)));
  });

  test('docker-compose.yml has secrets in files only, made once, hidden from other users and never in the environment', async () => {
    const names = Object.keys(compose.secrets);
    const readSecrets = () => Promise.all(names.map((name) => readFile(join(secrets, name), 'utf8')));
    const first = await readSecrets();
    const again = await makeSecrets(folder).then(readSecrets);
    expect(again).toEqual(first);
    expect(new Set(first).size).toBe(names.length);
    expect((await stat(secrets)).mode & 0o777).toBe(0o700);
    const password = await readFile(join(secrets, 'postgres_password'), 'utf8');
    expect(await readFile(join(secrets, 'database_url'), 'utf8')).toContain(password);
    // docker-compose.yml may use only variables of compose.env.example and SLUICE_VERSION. Each
    // variable of compose.env.example must be used in docker-compose.yml, or be a setting.
    const text = await readFile(join(repository, 'docker-compose.yml'), 'utf8');
    const mentioned = new Set([...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name ?? ''));
    const settingNames = new Set<string>(Object.values(settings).map(({ name }) => name));
    const isKnown = (name: string) => settingNames.has(name) || settingNames.has(name.replace(/_FILE$/, ''));
    expect([...mentioned].filter((name) => !Object.hasOwn(variables, name))).toEqual(['SLUICE_VERSION']);
    expect(Object.keys(variables).filter((name) => !mentioned.has(name) && !isKnown(name))).toEqual([]);
    expect(text).not.toMatch(/PASSWORD(?!_FILE)\b/);
  });

  test('docker-compose.yml opens ports on 127.0.0.1 only, and gives sluice only the rights that it needs', () => {
    for (const [, { ports = [] }] of services)
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    const data = services.filter(([name]) => ['postgres', 'redis'].includes(name));
    for (const [, { ports, networks }] of data) expect([ports, networks]).toEqual([undefined, ['inside']]);
    expect(compose.networks['inside']).toEqual({ internal: true });
    for (const [, service] of ours) {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], user: '1000:1000' });
      const { shutdownMs } = readConfig(withSecrets(service.environment, secrets));
      expect(Number.parseInt(service.stop_grace_period ?? '', 10) * 1000).toBeGreaterThan(shutdownMs + 5_000);
    }
  });
});

describe('Dockerfile', () => {
  test('the Dockerfile copies files that exist and that .dockerignore lets through', async () => {
    const ignore = (await readFile(join(repository, '.dockerignore'), 'utf8')).split('\n');
    const stages = await readDockerfile();
    for (const { instructions } of stages) {
      for (const [instruction, text] of instructions) {
        if (instruction !== 'COPY') continue;
        const from = /^--from=(\w+) /.exec(text)?.[1];
        const sources = text
          .replace(/^--from=\w+ /, '')
          .split(' ')
          .slice(0, -1);
        if (from !== undefined) expect(stages.map(({ name }) => name)).toContain(from);
        else
          for (const source of sources) {
            expect(existsSync(join(repository, source)), source).toBe(true);
            expect(ignore).toContain(`!${source}`);
          }
      }
    }
    expect(ignore.find((line) => line !== '' && !line.startsWith('#'))).toBe('*');
  });

  test('the Dockerfile has the files of the package, runs without a privileged user, and starts the command of compose', async () => {
    const stages = await readDockerfile();
    const last = stages.at(-1)?.instructions ?? [];
    const {
      files,
      engines,
      repository: home,
    } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as {
      readonly files: readonly string[];
      readonly engines: { readonly node: string };
      readonly repository: { readonly url: string };
    };
    // Ignores files that the build creates, and files that only readers on npm need.
    const copied = stages[0]?.instructions.flatMap(([name, text]) =>
      name === 'COPY' ? text.split(' ') : [],
    );
    const needed = files.filter((file) => !/dist|openapi|CHANGELOG/.test(file));
    const isCopied = (file: string) =>
      copied?.some((path) => path === file || file.startsWith(`${path}/`)) === true;
    expect([...needed, 'LICENSE'].filter((file) => !isCopied(file))).toEqual([]);
    expect(only(last, 'COPY')).toBe('--from=build /build/package ./');
    expect(only(last, 'LABEL')).toContain(home.url.replace(/^git\+(.*)\.git$/, 'source="$1"'));
    expect(only(last, 'USER')).toBe('1000:1000');
    expect(only(last, 'STOPSIGNAL')).toBe('SIGTERM');
    expect(JSON.parse(only(last, 'ENTRYPOINT'))).toEqual(['node', 'dist/bundle/main.js']);
    expect(JSON.parse(only(last, 'CMD'))).toEqual(['serve']);
    const major = Number(/^node:(\d+)\.\d+\.\d+-slim$/.exec(only(last, 'FROM'))?.[1]);
    expect(major).toBeGreaterThanOrEqual(Number(/\d+/.exec(engines.node)?.[0]));
  });
});
