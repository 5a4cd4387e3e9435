import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { packageRoot } from '../../src/base/package-root.ts';
import type { Capability } from '../../src/capability.ts';

/** Files that assemble a process. Only they may import the registry. */
const roots = new Set([
  ...[
    'src/processes/open-system.ts',
    'src/processes/app.ts',
    'src/processes/program.ts',
    'src/processes/sandbox.ts',
  ],
  'jobs/kinds.ts',
]);

interface Import {
  readonly from: string;
  readonly of: string;
}

const imports: Import[] = [];
const files = ['src', 'jobs', 'sql'].flatMap((folder) =>
  readdirSync(join(packageRoot, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
    join(folder, file),
  ),
);
for (const from of files.filter((file) => /\.tsx?$/.test(file))) {
  const text = readFileSync(join(packageRoot, from), 'utf8');
  for (const [, path = ''] of text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g))
    imports.push({ from, of: normalize(join(dirname(from), path)) });
}

/**
 * All capabilities, read from their folders, because in tests of the core the registry is empty.
 */
const capabilities = await Promise.all(
  readdirSync(join(packageRoot, 'src/capabilities')).map(async (name): Promise<Capability> => {
    const exports: Readonly<Record<string, Capability>> = await import(
      `../../src/capabilities/${name}/${name}.ts`
    );
    const [capability] = Object.values(exports).filter((value) => value.name === name);
    if (capability === undefined) throw new Error(`${name}.ts exports no capability ${name}`);
    return capability;
  }),
);

const capabilityOf = (path: string): string | null => /^src\/capabilities\/([^/]+)\//.exec(path)?.[1] ?? null;

// Importing a capability declares its records. The API document of the core must not contain them.
afterAll(() => {
  vi.resetModules();
});

test('the core imports no capability, and only the process roots import the registry', () => {
  const ofCore = imports.filter(({ from }) => capabilityOf(from) === null && from !== 'src/registry.ts');
  expect(ofCore.filter((each) => capabilityOf(each.of) !== null)).toEqual([]);
  const ofRegistry = imports.filter(({ of }) => of === 'src/registry.ts').map(({ from }) => from);
  expect(new Set(ofRegistry)).toEqual(roots);
});

test('a capability imports only the records and main module of capabilities it needs', () => {
  const needs = new Map(capabilities.map(({ name, needs: neededNames = [] }) => [name, neededNames]));
  const foreign = imports.filter(({ from, of }) => {
    const importer = capabilityOf(from);
    const imported = capabilityOf(of);
    if (importer === null || imported === null || importer === imported) return false;
    const isOpen = ['api', imported].some((name) => of === `src/capabilities/${imported}/${name}.ts`);
    return needs.get(importer)?.includes(imported) !== true || !isOpen;
  });
  expect(foreign).toEqual([]);
});

test('the hooks of loads belong to an option of their capability', () => {
  const wrong = capabilities.filter(({ loads: { hooks, options = {} } = {} }) => {
    return hooks !== undefined && !Object.hasOwn(options, hooks.option);
  });
  expect(wrong.map(({ name }) => name)).toEqual([]);
});

test('every folder of capabilities is in the registry', () => {
  const registered = imports
    .filter(({ from }) => from === 'src/registry.ts')
    .map(({ of }) => capabilityOf(of));
  expect(registered.filter((name) => name !== null).toSorted()).toEqual(
    capabilities.map(({ name }) => name).toSorted(),
  );
});

/** The folders of the core. Each may import only from folders that precede it in this list. */
const layers = [
  ...['base', 'domain', 'formats', 'files', 'postgres', 'tasks', 'queue', 'telemetry', 'http', 'cli'],
  ...[
    'lookups',
    'access',
    'ingest',
    'load',
    'export',
    'deletion',
    'jobs',
    'profiles',
    'console',
    'processes',
  ],
];
const layerOf = (path: string): string =>
  path === 'src/cli/main.ts'
    ? 'processes'
    : (/^src\/(?!capabilities\/|console\/client\/)([^/]+)\//.exec(path)?.[1] ?? '');

test('every folder of the core is a layer that imports only earlier layers', () => {
  const folders = new Set(files.map(layerOf));
  expect([...folders].toSorted()).toEqual(['', ...layers].toSorted());
  const upward = imports.filter(({ from, of }) => {
    const importer = layers.indexOf(layerOf(from));
    return importer !== -1 && layers.indexOf(layerOf(of)) > importer;
  });
  expect(upward).toEqual([]);
});

const isOfBrowser = (path: string): boolean =>
  /^src\/(console\/client|(capabilities\/)?[^/]+\/console)\//.test(path);
const isPart = (path: string): boolean => /^src\/console\/client\/(ui|lib|part\.ts)/.test(path);

test('the server imports no screen, and screens import only its records and pure rules', () => {
  const open = /^src\/(base|domain)\/|\/(\w+-)?api\.ts$|^src\/http\/(job|run)\.ts$/;
  const crossing = imports.filter(({ from, of }) =>
    isOfBrowser(from) ? !isOfBrowser(of) && !open.test(of) : isOfBrowser(of),
  );
  expect(crossing).toEqual([]);
});

test('the shared parts of screens import no screen', () => {
  const upward = imports.filter(({ from, of }) => isPart(from) && isOfBrowser(of) && !isPart(of));
  expect(upward).toEqual([]);
});

/** Words that name a capability. Code, SQL and comments of the core must not contain them. */
const nouns: Readonly<Record<string, RegExp>> = {
  personal: /personal/i,
  rules: /(?<![-\w])rules\b/i,
  inspection: /inspection|imports\/inspect/i,
  suppression: /suppression/i,
  mirror: /mirror/i,
  'all-or-nothing': /\bon_failure|all-or-nothing/i,
  undo: /\bundo(es)?\b/i,
  notifications: /notification|subscription|webhook|deliver(y|ies)/i,
  schedules: /schedule/i,
  inbox: /inbox/i,
  products:
    /mixpanel|amplitude|posthog|rudderstack|userpilot|(another|other) product|calls? of Segment|company_?from/i,
  lake: /lake|iceberg/i,
  audit: /audit.?(log|entr|days)|v1\/audit/i,
  oidc: /oidc|openid connect/i,
  configuration: /environment files?\b|sluice apply\b/i,
  where: /--where\b|condition of an export/i,
};

const ofDocument = 'text of the API document, which lists the sources of a value';
const oneTable = 'settings are one table, in the order of their documentation';
const ofOrigins = 'a closed list of the interface';
const ofMigration = 'a migration is never edited';
const ofPresets = 'presets are an option of the interface';
/** Files of the core that may name capabilities, with the reason for each. */
const exceptions: Readonly<Record<string, string>> = {
  'src/http/job.ts': ofDocument,
  'src/load/api.ts': ofDocument,
  'src/jobs/overview-api.ts': ofDocument,
  'src/export/options.ts': ofDocument,
  'src/profiles/api.ts': ofDocument,
  'src/deletion/api.ts': ofDocument,
  'src/http/api-document.ts': 'chapters of the API document, in their order',

  'src/base/settings.ts': oneTable,
  'src/cli/processes.ts': oneTable,
  'src/cli/workers.ts': oneTable,
  'src/domain/source.ts': ofPresets,
  'src/load/cli.ts': ofPresets,
  'src/domain/load.ts': ofOrigins,
  'src/domain/task.ts': ofOrigins,
  'src/domain/need.ts': ofOrigins,
  'src/load/end-store.ts': 'the origin distinguishes loads of one source',
  'src/domain/looks.ts': 'the console and the command line propose the same line of the definitions file',
  'src/export/request-export.ts': 'a warning about the place of older events',
  'src/postgres/schema.ts': 'generated from the database',
  'sql/migrations/0003_create_loads.sql': ofOrigins,
  'sql/migrations/0007_create_exports.sql': ofOrigins,
  'sql/migrations/0008_create_deletions.sql': ofOrigins,
  'sql/migrations/0010_create_event_retention.sql': ofMigration,
  'sql/migrations/0016_admit_other_sign_ins.sql': ofOrigins,
};

test('the core names no capability outside the files listed with a reason', () => {
  expect(Object.keys(nouns).toSorted()).toEqual(capabilities.map(({ name }) => name).toSorted());
  const filesWithNames = new Set<string>();
  for (const file of files) {
    const isOfCore = /\.(tsx?|sql)$/.test(file) && !/^src\/(capabilities\/|registry)/.test(file);
    const text = isOfCore ? readFileSync(join(packageRoot, file), 'utf8') : '';
    if (Object.values(nouns).some((noun) => noun.test(text))) filesWithNames.add(file);
  }
  expect([...filesWithNames].toSorted()).toEqual(Object.keys(exceptions).toSorted());
});

/** The word "rules" alone is allowed, because Prometheus also has rules. */
const nounsOfTests = { ...nouns, rules: /\/v1\/rules|rules_version|'Rules'/ };

const wholeProgram = 'runs the whole program, as people do';
const oneConsole = 'the console has the screens of all capabilities';
const listsFiles = 'a list of test files';
/** Tests of the core that may name capabilities, with the reason for each. */
const exceptionsOfTests: Readonly<Record<string, string>> = {
  'test/acceptance/baseline.test.ts': wholeProgram,
  'test/acceptance/compose.test.ts': wholeProgram,
  'test/acceptance/core.test.ts': 'asks for a command that the core does not have',
  'test/acceptance/hosted-postgres.test.ts': wholeProgram,
  'test/acceptance/package.test.ts': wholeProgram,
  'test/acceptance/readme.test.ts': wholeProgram,
  'test/acceptance/reference.test.ts': wholeProgram,
  'test/console/frame.test.ts': oneConsole,
  'test/contract/http/lookups.test.ts': 'the sample of definitions has a feature of such a name',
  'test/support/longest-first.ts': listsFiles,
  'test/support/tiers.ts': listsFiles,
  'test/integration/status-checks.test.ts': oneTable,
  'test/unit/config.test.ts': oneTable,
  'test/unit/postgres/neutral-statements.test.ts': 'looks at the statements of capabilities, too',
};

test('tests of the core name no capability outside the files listed with a reason', () => {
  const filesWithNames = new Set<string>();
  for (const file of readdirSync(join(packageRoot, 'test'), { recursive: true, encoding: 'utf8' })) {
    if (!/\.(ts|mjs)$/.test(file) || /^capabilities\/|^unit\/capabilities/.test(file)) continue;
    const text = readFileSync(join(packageRoot, 'test', file), 'utf8');
    if (Object.values(nounsOfTests).some((noun) => noun.test(text))) filesWithNames.add(`test/${file}`);
  }
  expect([...filesWithNames].toSorted()).toEqual(Object.keys(exceptionsOfTests).toSorted());
});
