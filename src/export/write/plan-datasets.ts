import type pg from 'pg';
import { type Dataset, datasets } from '../../domain/export.ts';
import { databaseOn } from '../../postgres/database.ts';
import type { Filter } from '../filter/filter.ts';
import { compileForCopy } from './copy-select.ts';
import { planCsv } from './csv.ts';
import { selectNdjson } from './ndjson.ts';
import { selectForParquet } from './parquet-columns.ts';
import type { DatasetPlan } from './write-dataset.ts';

/** What is to be read, in the order of the files. The client must be in the transaction that reads it. */
export async function planDatasets(client: pg.PoolClient, filter: Filter): Promise<DatasetPlan[]> {
  const plans: DatasetPlan[] = [];
  for (const dataset of datasets) {
    if (filter.request.datasets.includes(dataset)) plans.push(await planDataset(client, dataset, filter));
  }
  return plans;
}

async function planDataset(client: pg.PoolClient, dataset: Dataset, filter: Filter): Promise<DatasetPlan> {
  if (filter.request.format === 'csv') {
    const { select, header } = await planCsv(databaseOn(client), dataset, filter);
    return { dataset, format: 'csv', header, select: compileForCopy(select) };
  }
  const { format } = filter.request;
  const select = format === 'parquet' ? selectForParquet(dataset, filter) : selectNdjson(dataset, filter);
  return { dataset, format, header: Buffer.alloc(0), select: compileForCopy(select) };
}
