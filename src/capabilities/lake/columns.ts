import { MAX_PROPERTY_NAME_CHARS } from '../../base/limits.ts';
import { choice, listOf, objectOf, text, withDefault } from '../../base/operator-file/schema.ts';
import { dataTypes } from '../../domain/data-type.ts';
import type { DefinitionList } from '../../lookups/seam.ts';
import { lakeColumns } from './table-store.ts';

/** Each column adds about 100 bytes per row group to a file's footer. */
const MAX_LAKE_COLUMNS = 100;

/** Columns that every lake table has. Query engines ignore the case of these names. */
const ownColumns = [
  ...['event_id', 'event_type', 'event_name', 'user_id', 'company_id', 'source', 'inserted_at', 'metadata'],
  ...['first_seen_at', 'last_seen_at'],
];

const column = objectOf('a column of the lake', 'A property with a column of its own in the lake.', {
  key: text({
    maxChars: MAX_PROPERTY_NAME_CHARS,
    description: 'The name of the property, and of the column.',
    problem: (name) =>
      ownColumns.includes(name.toLowerCase()) ? 'is a column that the tables already have' : null,
  }),
  type: choice(dataTypes, 'The type of the column. Values of another type stay in `metadata` alone.'),
});

export const columns: DefinitionList = {
  name: 'lake_columns',
  schema: withDefault(
    listOf(column, 'Properties with columns of their own in the lake.', MAX_LAKE_COLUMNS),
    [],
  ),
  ignoresCase: true,
  table: lakeColumns,
};
