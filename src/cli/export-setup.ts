/** What an environment has besides data, as files beside those of an export, and back. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { applyDefinitions } from '../definitions/apply-definitions.ts';
import { readDefinitionsFile, writeDefinitionsFile } from '../definitions/definitions-file.ts';
import type { MappingRules } from '../domain/column-map.ts';
import { kinds } from '../domain/definitions.ts';
import { type Manifest, manifestName, type SetupFile } from '../export/write/manifest.ts';
import { keepMapping } from '../load/saved-mappings.ts';
import type { Database } from '../postgres/database.ts';
import { readDefinitions, withoutIds } from '../postgres/stores/definitions.ts';
import { findMapping, listMappings } from '../postgres/stores/mappings.ts';
import { listSubscriptions } from '../postgres/stores/notifications.ts';
import { readValidFile } from './operator-file.ts';

interface NamedRules {
  readonly name: string;
  readonly rules: MappingRules;
}

/** Written into the folder, and into its manifest. */
export async function writeSetup(db: Database, environmentId: number, folder: string): Promise<void> {
  const definitions = withoutIds(await readDefinitions(db, environmentId));
  const texts: Readonly<Record<SetupFile['filename'], string>> = {
    'definitions.yaml': writeDefinitionsFile(definitions, 'yaml'),
    'mappings.json': asText(await readMappings(db, environmentId)),
    'subscriptions.json': asText(await readSubscriptions(db, environmentId)),
  };
  const setup: SetupFile[] = [];
  for (const [filename, text] of Object.entries(texts) as [SetupFile['filename'], string][]) {
    const bytes = Buffer.from(text);
    await writeFile(join(folder, filename), bytes, { flag: 'wx', flush: true });
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    setup.push({ filename, bytes: bytes.length, sha256 });
  }
  const path = join(folder, manifestName);
  const manifest = JSON.parse(await readFile(path, 'utf8')) as Manifest;
  await writeFile(path, asText({ ...manifest, setup } satisfies Manifest), { flush: true });
}

function asText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

const mappingsPerPage = 500;

async function readMappings(db: Database, environmentId: number): Promise<NamedRules[]> {
  const found: NamedRules[] = [];
  for (let after: string | null = null; ; after = found.at(-1)?.name ?? null) {
    const page = await listMappings(db, environmentId, mappingsPerPage, after);
    for (const { name } of page) {
      const saved = await findMapping(db, environmentId, name);
      if (saved === null) continue;
      const { entity, map, source, format, columnNames } = saved;
      found.push({ name, rules: { entity, map, source, format, columnNames } });
    }
    if (page.length < mappingsPerPage) return found;
  }
}

/** Without their secrets: whoever is to be notified by another sluice, too, is subscribed there anew. */
async function readSubscriptions(db: Database, environmentId: number): Promise<object[]> {
  const subscriptions = await listSubscriptions(db, environmentId);
  return subscriptions.map(({ channel, target, outcomes, kinds: of }) => ({
    channel,
    target,
    outcomes,
    kinds: of,
  }));
}

export interface SetupLoaded {
  /** `left`: the environment has others, and nothing was changed. */
  readonly definitions: 'applied' | 'unchanged' | 'left' | 'absent';
  /** Saved mappings that were not there. */
  readonly mappings: number;
  /** Listed in the file, and not made. */
  readonly subscriptions: number;
}

/** Adds what is not there; changes and removes nothing. */
export async function loadSetup(
  db: Database,
  environmentId: number,
  folder: string,
  setup: readonly SetupFile[],
): Promise<SetupLoaded> {
  const pathOf = (name: SetupFile['filename']): string | null =>
    setup.some(({ filename }) => filename === name) ? join(folder, name) : null;
  const [definitions, mappings, subscriptions] = [
    pathOf('definitions.yaml'),
    pathOf('mappings.json'),
    pathOf('subscriptions.json'),
  ];
  return {
    definitions: definitions === null ? 'absent' : await loadDefinitions(db, environmentId, definitions),
    mappings: mappings === null ? 0 : await loadMappings(db, environmentId, mappings),
    subscriptions: subscriptions === null ? 0 : (await readList(subscriptions)).length,
  };
}

async function loadDefinitions(
  db: Database,
  environmentId: number,
  path: string,
): Promise<SetupLoaded['definitions']> {
  const items = await readValidFile(path, readDefinitionsFile);
  const look = await applyDefinitions(db, environmentId, items, { dryRun: true, force: false });
  const all = kinds.map((kind) => look.changes[kind]);
  if (all.some(({ changed, removed }) => changed.length + removed.length > 0)) return 'left';
  if (all.every(({ added }) => added.length === 0)) return 'unchanged';
  await applyDefinitions(db, environmentId, items, { dryRun: false, force: false });
  return 'applied';
}

async function loadMappings(db: Database, environmentId: number, path: string): Promise<number> {
  let added = 0;
  for (const { name, rules } of (await readList(path)) as NamedRules[]) {
    if ((await findMapping(db, environmentId, name)) !== null) continue;
    await keepMapping(db, environmentId, name, rules);
    added++;
  }
  return added;
}

/** The manifest says that the file is as we wrote it. */
async function readList(path: string): Promise<readonly unknown[]> {
  return JSON.parse(await readFile(path, 'utf8')) as readonly unknown[];
}
