import { type RawBuilder, sql } from 'kysely';
import type { Dataset } from '../../domain/export.ts';
import type { Filter } from '../filter.ts';
import type { Compilable } from './copy-out.ts';
import { pageMetadata, pageOf, pageTime, selectFromPage } from './page.ts';

/** One JSON text per row, as it stands in the file. */
export function selectNdjson(dataset: Dataset, filter: Filter): Compilable {
  const pieces = piecesOf(dataset, filter);
  return selectFromPage(pageOf(dataset, filter), [sql`${sql.join(pieces, sql` || `)}`]);
}

function piecesOf(dataset: Dataset, filter: Filter): RawBuilder<unknown>[] {
  const metadata = sql`${pageMetadata(filter)}::text`;
  const seen = [
    ...[sql`',"first_seen_at":"'`, pageTime('first_seen_at')],
    ...[sql`'","last_seen_at":"'`, pageTime('last_seen_at'), sql`'"}'`],
  ];
  switch (dataset) {
    case 'users':
      return [
        ...[sql`'{"user_id":'`, jsonText('user_id')],
        ...[companyMember, sql`',"metadata":'`, metadata, ...seen],
      ];
    case 'companies':
      return [sql`'{"company_id":'`, jsonText('company_id'), sql`',"metadata":'`, metadata, ...seen];
    case 'events':
      return [
        ...[sql`'{"event_id":'`, jsonText('event_id'), sql`',"event_type":'`, jsonText('event_type')],
        ...[sql`',"event_name":'`, jsonText('event_name'), sql`',"user_id":'`, jsonText('user_id')],
        ...[companyMember, sql`',"source":'`, jsonText('source')],
        ...[sql`',"inserted_at":"'`, pageTime('inserted_at'), sql`'","metadata":'`, metadata, sql`'}'`],
      ];
    default:
      return dataset satisfies never;
  }
}

/** A row without a company has no such member. */
const companyMember = sql`coalesce(',"company_id":' || ${jsonText('company_id')}, '')`;

function jsonText(column: string): RawBuilder<string> {
  return sql`to_json(${sql.ref(`page.${column}`)})::text`;
}
