import { type RawBuilder, sql } from 'kysely';
import { rowsOf, texts } from './parameters.ts';
import { type LeftOut, likePattern } from './wildcard.ts';

/** Names beyond which a hash table of them is worth taking the object apart. */
const fewNames = 20;

/** A jsonb object without some of its properties. */
export function withoutProperties(metadata: RawBuilder<unknown>, { names, patterns }: LeftOut) {
  if (names.length === 0 && patterns.length === 0) return metadata;
  if (names.length <= fewNames && patterns.length === 0) return sql`(${metadata} - ${texts(names)})`;
  const likes = texts(patterns.map(likePattern));
  return sql`(
    select coalesce(jsonb_object_agg(key, value), '{}')
    from jsonb_each(${metadata})
    where key not in (select ${rowsOf(names)})
      and (key like any(${likes})) is not true
  )`;
}
