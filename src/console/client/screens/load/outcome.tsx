import type { VNode } from 'preact';
import type { Inspection } from '../../../../api/inspection.ts';
import type { Query } from '../../lib/address.ts';
import { formatCount, plural, visibleText } from '../../lib/format.ts';
import type { InspectedColumn } from '../../lib/records.ts';
import { Notice } from '../../ui/problems.tsx';

interface Props {
  readonly query: Query;
  readonly found: Inspection;
}

/** The least share of rows with a unique id, if the right column was chosen. */
const usualDistinct = 0.8;
/** The least number of rows from which this can be judged. */
const fewestRows = 5;

/** Shows in a sentence what each row becomes, and any evidence against it. */
export function Outcome({ query, found }: Props): VNode | null {
  const { records, whole_file: isWhole, columns, preset } = found;
  const rows = records - found.rejects.count;
  if (preset !== null && query.get('map') === '') {
    return (
      <p class="outcome">{`The records are events as ${preset} exports them, and are read with preset=${preset}.`}</p>
    );
  }
  const kind = kindOf(found);
  const id = columns.find(({ becomes }) => becomes === (kind === 'company' ? 'company_id' : 'user_id'));
  if (id === undefined || kind === null) return null;
  const company = kind === 'company' ? undefined : columns.find(({ becomes }) => becomes === 'company_id');
  const looked = isWhole
    ? `Each of the ${plural(records, 'row')}`
    : `Each row (of ${plural(records, 'row')} looked at)`;
  const ids = `${plural(id.distinct, 'distinct id')}`;
  const names = new Set(columns.map(({ name }) => name.toLowerCase()));
  const isEvents = kind !== 'event' && isAny(names, eventNames) && isAny(names, timeNames);
  return (
    <>
      <p class="outcome">
        {looked} becomes {kind === 'user' ? 'a ' : kind === 'event' ? 'an ' : 'a '}
        <strong>{kind}</strong>
        {kind === 'event' ? ' of the user in ' : ', identified by '}
        <strong>{visibleText(id.name)}</strong>: {ids}
        {company === undefined
          ? ''
          : `; its company is ${visibleText(company.name)}, ${formatCount(company.distinct)} distinct`}
        .
      </p>
      {isEvents ? (
        <Notice>
          The columns look like those of events. As profiles, each row overwrites the properties of its {kind}{' '}
          with those of the event.
        </Notice>
      ) : null}
      {kind !== 'event' && rows >= fewestRows && id.distinct < usualDistinct * rows ? (
        <Notice>{shared(id, rows, otherId(columns, id, rows))}</Notice>
      ) : null}
    </>
  );
}

function kindOf({ columns, entity }: Inspection): 'user' | 'company' | 'event' | null {
  const fields = new Set(columns.map(({ becomes }) => becomes));
  if (fields.has('event_name') || fields.has('event_type')) return fields.has('user_id') ? 'event' : null;
  if (fields.has('user_id') && entity !== 'companies') return 'user';
  return fields.has('company_id') ? 'company' : null;
}

function shared(id: InspectedColumn, rows: number, other: InspectedColumn | undefined): string {
  const most = `${formatCount(rows)} rows have only ${formatCount(id.distinct)} ids in ${visibleText(id.name)}: of the rows that share one, the last counts.`;
  if (other === undefined) return most;
  return `${most} ${visibleText(other.name)} differs in every row: if it says what a row is about, make it the id.`;
}

/** Returns a column that is filled and different in every row. */
function otherId(
  columns: Inspection['columns'],
  id: InspectedColumn,
  rows: number,
): InspectedColumn | undefined {
  return columns.find((column) => column !== id && column.filled >= rows && column.distinct >= rows);
}

const eventNames = ['event', 'event_name', 'eventname', 'event_type', 'eventtype'];
const timeNames = [
  'timestamp',
  'time',
  'event_time',
  'eventtime',
  'occurred_at',
  'originaltimestamp',
  'sent_at',
  'received_at',
];

function isAny(names: ReadonlySet<string>, wanted: readonly string[]): boolean {
  return wanted.some((name) => names.has(name));
}
