import type pg from 'pg';
import { type Dataset, datasets } from '../../domain/export.ts';
import type { FileStore } from '../../files/file-store.ts';
import { databaseOn } from '../../postgres/database.ts';
import type { Filter } from '../filter/filter.ts';
import { allEvents, findLeftEvents, storedEvents } from './archived-events.ts';
import { type CopySelect, compileForCopy } from './copy-select.ts';
import { planCsv } from './csv.ts';
import { selectNdjson } from './ndjson.ts';
import { selectForParquet } from './parquet-columns.ts';
import type { DatasetPlan } from './write-dataset.ts';

/** What is to be read, in the order of the files. The client must be in the transaction that reads it. */
export async function planDatasets(
  client: pg.PoolClient,
  files: FileStore,
  filter: Filter,
): Promise<DatasetPlan[]> {
  const plans: DatasetPlan[] = [];
  for (const dataset of datasets) {
    if (!filter.request.datasets.includes(dataset)) continue;
    plans.push(
      dataset === 'events'
        ? await planEvents(client, files, filter)
        : await planDataset(client, dataset, filter),
    );
  }
  return plans;
}

/** Events may have left the database since. */
async function planEvents(client: pg.PoolClient, files: FileStore, filter: Filter): Promise<DatasetPlan> {
  const left = await findLeftEvents(client, filter);
  if (left.archives.length === 0 && left.tables.length === 0) return planDataset(client, 'events', filter);
  const planOf = (events: Filter['events']): Promise<DatasetPlan> =>
    planDataset(client, 'events', { ...filter, ...(events && { events }) });
  async function* selects(): AsyncGenerator<CopySelect> {
    for await (const events of allEvents(files, filter, left)) yield (await planOf(events)).select;
  }
  return {
    ...(await planOf(storedEvents(filter, left))),
    pieces: { selects, rows: left.archives.reduce((sum, { rows }) => sum + rows, 0) },
  };
}

async function planDataset(client: pg.PoolClient, dataset: Dataset, filter: Filter): Promise<DatasetPlan> {
  if (filter.request.format === 'csv') {
    const { select, header } = await planCsv(databaseOn(client), dataset, filter);
    return { dataset, format: 'csv', header, select: compileForCopy(select), pieces: null };
  }
  const { format } = filter.request;
  const select = format === 'parquet' ? selectForParquet(dataset, filter) : selectNdjson(dataset, filter);
  return { dataset, format, header: Buffer.alloc(0), select: compileForCopy(select), pieces: null };
}
