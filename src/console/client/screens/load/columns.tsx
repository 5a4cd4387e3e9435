import type { VNode } from 'preact';
import type { Inspection } from '../../../../api/upload.ts';
import type { CellType } from '../../../../domain/cell-type.ts';
import { presetTitles } from '../../../../domain/load.ts';
import { personalRule } from '../../../../domain/personal.ts';
import { formatCount, formatShare, plural, visibleText } from '../../lib/format.ts';
import type { InspectedColumn } from '../../lib/jobs.ts';
import { type Options, Select, useTyped } from '../../ui/controls.tsx';
import { barOf } from '../../ui/drawings.tsx';
import { Notice, Value, VisibleText } from '../../ui/page.tsx';
import { type Column, TableSection } from '../../ui/table.tsx';
import { type Inspected, isPreset } from './inspection.ts';
import {
  type ColumnMap,
  type Role,
  roleOf,
  typesIn,
  typesWith,
  within,
  withProperty,
  withRole,
} from './mapping.ts';
import { StartPlan } from './plan.tsx';
import { RefusedSamples } from './reading.tsx';

/** Shows what each column becomes. The server reads the file again with each choice. */
export function Columns({ query, found }: Inspected): VNode {
  const types = typesIn(query, found);
  const choose = (map: ColumnMap, chosen = types): void =>
    query.set({
      map: JSON.stringify(map),
      types: JSON.stringify(typesWith(chosen, map, found)),
      ...{ preset: undefined, plan: undefined },
    });
  const hasTypes = found.read_as?.csv != null && !isPreset(query, found);
  const read = found.records - found.rejects.count;
  const columns: readonly Column<InspectedColumn>[] = [
    [
      'Column',
      ({ name }) => (
        <strong class="name">
          <VisibleText text={name} />
        </strong>
      ),
    ],
    [
      'Becomes',
      (column) =>
        isPreset(query, found) ? (
          <VisibleText text={column.becomes ?? '–'} />
        ) : (
          <Becomes column={column} found={found} onChange={choose} />
        ),
    ],
    [
      'Type',
      (column) =>
        hasTypes && roleOf(column) === 'property' ? (
          <TypeOf
            column={column}
            type={types[column.name] ?? ''}
            onChange={(type) => choose(found.map, { ...types, [column.name]: type })}
          />
        ) : (
          <span class="muted">{column.type ?? '–'}</span>
        ),
    ],
    ['Filled', ({ filled }) => barOf(filled, read, formatShare(filled, read)), 'num'],
    ['Distinct', ({ filled, distinct }) => barOf(distinct, filled, formatCount(distinct)), 'num'],
    ['Values', valuesOf],
  ];
  return (
    <>
      {isPreset(query, found) ? null : <ProblemNotice found={found} />}
      <Outcome query={query} found={found} />
      <TableSection
        title={plural(found.columns.length, 'column')}
        of={found.columns}
        caption="Columns of the file"
        isTall
        columns={columns}
        keyOf={({ name }) => name}
      />
      <RefusedSamples found={found} />
      <div class="row">
        <StartPlan query={query} found={found} />
      </div>
    </>
  );
}

/** Says why the file cannot be loaded as it is, and what is proposed. */
function ProblemNotice({ found: { problem, columns } }: Pick<Inspected, 'found'>): VNode | null {
  if (problem === null) return null;
  const proposed = columns.find(({ becomes, reason }) => becomes !== null && /looks like/.test(reason));
  return (
    <Notice>
      {proposed === undefined
        ? `${problem.message} ${visibleText(problem.details)}`
        : `No column is named user_id or company_id. ${visibleText(proposed.name)} is proposed: ${proposed.reason}.`}
    </Notice>
  );
}

/** Shows in a sentence what each row becomes. */
function Outcome({ query, found }: Inspected): VNode | null {
  const { records, whole_file: isWhole, columns, preset, entity } = found;
  if (preset !== null && isPreset(query, found))
    return (
      <p class="outcome">
        This is read as an export of <strong>{presetTitles[preset]}</strong>.
      </p>
    );
  const columnOf = (field: string) => columns.find(({ becomes }) => becomes === field);
  const isEvent = columnOf('event_name') !== undefined || columnOf('event_type') !== undefined;
  const user = entity === 'companies' && !isEvent ? undefined : columnOf('user_id');
  const company = columnOf('company_id');
  const kind = isEvent ? 'event' : user === undefined ? 'company' : 'user';
  const id = user ?? (isEvent ? undefined : company);
  if (id === undefined) return null;
  return (
    <p class="outcome break">
      {isWhole
        ? `Each of the ${plural(records, 'row')}`
        : `Each row (of ${plural(records, 'row')} looked at)`}{' '}
      becomes {isEvent ? 'an ' : 'a '}
      <strong>{kind}</strong>
      {isEvent ? ' of the user in ' : ', identified by '}
      <strong>{visibleText(id.name)}</strong>: {plural(id.distinct, 'distinct id')}
      {company === undefined || company === id
        ? ''
        : `; its company is ${visibleText(company.name)}, ${formatCount(company.distinct)} distinct`}
      .
    </p>
  );
}

const roles: readonly (readonly [Role, string])[] = [
  ['user_id', 'User id'],
  ['company_id', 'Company id'],
  ['property', 'Property'],
  ['ignore', 'Ignored'],
];

interface BecomesProps {
  readonly column: InspectedColumn;
  readonly found: Inspection;
  readonly onChange: (map: ColumnMap) => void;
}

function Becomes({ column, found, onChange }: BecomesProps): VNode {
  const { name, becomes } = column;
  const role = roleOf(column);
  const property = becomes?.startsWith(within) === true ? becomes.slice(within.length) : name;
  const typed = useTyped(property, (text) => {
    if (text !== '') onChange(withProperty(found.map, name, text));
  });
  const isProperty = role === 'property';
  return (
    <span class="two-lines" title={column.reason}>
      <span class="row becomes">
        <Select
          label={`What ${name} becomes`}
          value={role}
          options={role === 'other' ? [...roles, ['other', becomes ?? '']] : roles}
          onChange={(chosen) => onChange(withRole(found.map, found.columns, name, chosen as Role))}
        />
        {isProperty ? (
          <input type="text" aria-label={`Property that ${name} becomes`} {...typed} spellcheck={false} />
        ) : null}
      </span>
    </span>
  );
}

const typeNames = {
  number: 'Number',
  decimal_comma: 'Number, 1.234,5',
  boolean: 'Yes or no',
  date: 'Date',
  day_first: 'Date, day first',
  month_first: 'Date, month first',
} as const satisfies Record<CellType, string>;
const typeOptions: Options = [['', 'Text'], ...Object.entries(typeNames)];

interface TypeProps {
  readonly column: InspectedColumn;
  readonly type: string;
  readonly onChange: (type: string) => void;
}

/** Offers the types of a column, and names those that all of its values have. */
function TypeOf({ column: { name, fits }, type, onChange }: TypeProps): VNode {
  const [likely] = fits;
  const isOpen = likely === 'day_first' && fits.includes('month_first');
  return (
    <span class="two-lines">
      <Select label={`Type of ${name}`} value={type} options={typeOptions} onChange={onChange} />
      {type !== '' || likely === undefined ? null : (
        <span class="faint">
          Looks like: {isOpen ? 'date, day or month first' : typeNames[likely].toLowerCase()}
        </span>
      )}
    </span>
  );
}

function valuesOf({ becomes, looks_like, frequent, distinct }: InspectedColumn): VNode {
  const rule = personalRule(becomes, looks_like);
  if (frequent.length === 0) return <span class="faint">–</span>;
  const more = distinct - frequent.length;
  return (
    <span class="row small values">
      {frequent.map(({ value, count }) => (
        <span key={JSON.stringify(value)} class="tag cut">
          <Value of={value} /> <span class="faint num">{formatCount(count)}</span>
        </span>
      ))}
      {more > 0 ? <span class="faint nowrap">and {formatCount(more)} more</span> : null}
      {rule === null ? null : (
        <span class="faint">
          Looks personal; to protect it, add to the rules file: <code>{rule}</code>
        </span>
      )}
    </span>
  );
}
