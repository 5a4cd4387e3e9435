import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultEnvironmentName, findEnvironment } from '../../access/environments.ts';
import { applyCatalogue } from '../../catalogue/apply/apply-catalogue.ts';
import { readCatalogueFile } from '../../catalogue/file/read-catalogue-file.ts';
import { type CatalogueItems, kinds } from '../../catalogue/items/items.ts';
import { packageRoot } from '../../package-root.ts';
import { previewSegment } from '../../segments/preview-segment.ts';
import { readSegment } from '../../segments/read-segment.ts';
import { CommandFailed } from '../exit-codes.ts';
import { explainProblems } from '../explain-problems.ts';
import { formatCount } from '../format-numbers.ts';
import { renderTable } from '../table.ts';
import type { Client } from './client.ts';
import type { DemoStage } from './show-loads.ts';

const sample = join('docs', 'samples', 'catalogue.yaml');

/** What an operator defines: applied from the sample, listed by its lookup, and how many users are in each segment. */
export async function showCatalogue(stage: DemoStage, client: Client): Promise<void> {
  const { cli, service, heading } = stage;
  const { db } = service.system;
  cli.terminal.print(heading('9  A catalogue of segments, surveys, features'));
  const environment = await findEnvironment(db, defaultEnvironmentName);
  if (environment === null) throw new CommandFailed('The first start made no environment.');
  const { environmentId } = environment;
  const items = await readSample();
  await applyCatalogue(db, environmentId, items, { dryRun: false, force: false });
  cli.terminal.print(`   $ sluice catalogue apply ${sample}`);
  const counts = kinds.map((kind) => `${items[kind].length} ${kind.replaceAll('_', ' ')}`);
  cli.terminal.print(`   ${counts.join(', ')}\n`);
  cli.terminal.print('   GET /api/v1/analytics/exports/lookups/segments, and the users in each');
  const segments = await client.segments();
  const rows = await Promise.all(
    segments.map(async ({ id, title }, index) => {
      const { segment } = readSegment(items.segments[index]?.definition);
      if (segment === null) throw new CommandFailed(`The definition of ${title} cannot be read.`);
      const { users } = await previewSegment(db, environmentId, segment, { sample: 0 });
      return [String(id), title, formatCount(users)];
    }),
  );
  const columns = [
    { title: 'id', align: 'right' },
    { title: 'title' },
    { title: 'users', align: 'right' },
  ] as const;
  for (const line of renderTable(columns, rows)) cli.terminal.print(`   ${line}`);
}

async function readSample(): Promise<CatalogueItems> {
  const reading = readCatalogueFile(await readFile(join(packageRoot, sample)));
  if (reading.items === null) throw new CommandFailed(explainProblems(sample, reading));
  return reading.items;
}
