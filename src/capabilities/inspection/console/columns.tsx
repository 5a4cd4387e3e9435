import type { VNode } from 'preact';
import type { Query } from '../../../console/client/lib/address.ts';
import { formatCount, formatShare, plural, visibleText } from '../../../console/client/lib/format.ts';
import { useStart } from '../../../console/client/lib/jobs.ts';
import {
  ActionButton,
  Button,
  type Options,
  Select,
  useTyped,
} from '../../../console/client/ui/controls.tsx';
import { barOf } from '../../../console/client/ui/drawings.tsx';
import { type Column, List } from '../../../console/client/ui/list.tsx';
import { Notice, VisibleText } from '../../../console/client/ui/page.tsx';
import { Value } from '../../../console/client/ui/properties.tsx';
import type { CellType } from '../../../domain/data-type.ts';
import { personalRule } from '../../../domain/looks.ts';
import { presetTitles } from '../../../domain/source.ts';
import type { Inspection } from '../api.ts';
import {
  type ColumnMap,
  givenOptions,
  type Inspected,
  type InspectedColumn,
  isPreset,
  mapOf,
  optionsOf,
  type Role,
  roleOf,
  typesIn,
  typesWith,
  within,
  withProperty,
  withRole,
} from './inspection.ts';
import { RefusedSamples } from './reading.tsx';

/** After each choice by the user, the server inspects the file again. */
export function Columns({ query, inspection }: Inspected): VNode {
  const types = typesIn(query, inspection);
  const choose = (map: ColumnMap, chosen = types): void =>
    query.set({
      map: JSON.stringify(map),
      types: JSON.stringify(typesWith(chosen, map, inspection)),
      preset: undefined,
    });
  const hasTypes = inspection.read_as?.csv != null && !isPreset(query, inspection);
  const accepted = inspection.records - inspection.rejects.count;
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
        isPreset(query, inspection) ? (
          <VisibleText text={column.becomes ?? '–'} />
        ) : (
          <Becomes column={column} inspection={inspection} onChange={choose} />
        ),
    ],
    [
      'Type',
      (column) =>
        hasTypes && roleOf(column) === 'property' ? (
          <TypeOf
            column={column}
            type={types[column.name] ?? ''}
            onChange={(type) => choose(inspection.map, { ...types, [column.name]: type })}
          />
        ) : (
          <span class="muted">{column.type ?? '–'}</span>
        ),
    ],
    ['Filled', ({ filled }) => barOf(filled, accepted, formatShare(filled, accepted)), 'num'],
    ['Distinct', ({ filled, distinct }) => barOf(distinct, filled, formatCount(distinct)), 'num'],
    ['Values', valuesOf],
  ];
  return (
    <>
      {isPreset(query, inspection) ? null : <Cure query={query} inspection={inspection} onChange={choose} />}
      <Outcome query={query} inspection={inspection} />
      <List
        title={plural(inspection.columns.length, 'column')}
        of={inspection.columns}
        isTall
        columns={columns}
        keyOf={({ name }) => name}
      />
      <RefusedSamples inspection={inspection} />
      <Start query={query} inspection={inspection} />
    </>
  );
}

function loadOptions(query: Query, { map, preset }: Inspection): Record<string, unknown> {
  const options = optionsOf(query);
  if (mapOf(query) !== null || query.get('options_of') !== '') return options;
  if (preset !== null) return { ...options, preset };
  return Object.keys(map).length === 0 ? options : { ...options, map };
}

/** If anything is in doubt, starts a plan, which shows what the load would do. */
function Start({ query, inspection }: Inspected): VNode {
  const start = useStart();
  const load = (change: object) => () =>
    start('/v1/imports', { ...loadOptions(query, inspection), ...change });
  const missing = missingIn(inspection);
  const isReady = missing === null || isPreset(query, inspection);
  const isSure =
    inspection.problem === null &&
    inspection.rejects.count === 0 &&
    !givenOptions.some(({ decides }) => decides(query));
  return (
    <div class="row">
      {isSure ? (
        <ActionButton look="main" scopes="import" act={load({})}>
          Load {inspection.whole_file ? plural(inspection.records, 'record') : 'the file'}
        </ActionButton>
      ) : null}
      <ActionButton
        look={isSure ? undefined : 'main'}
        scopes="import"
        disabled={!isReady}
        act={load({ plan: true })}
      >
        Plan the load
      </ActionButton>
      <p class="hint">{isReady ? 'A plan reads the whole file, and writes nothing.' : missing}</p>
    </div>
  );
}

function missingIn(inspection: Inspection): string | null {
  if (isKindMissing(inspection)) return 'The records must say what they are: see above.';
  if (inspection.columns.some(isId)) return null;
  return 'First choose the column that is the user id or the company id.';
}

function isId({ becomes }: InspectedColumn): boolean {
  return becomes === 'user_id' || becomes === 'company_id';
}

function isKindMissing({ problem }: Inspection): boolean {
  return problem?.message.includes('event_type') === true;
}

const mostOffered = 3;

interface CureProps extends Inspected {
  readonly onChange: (map: ColumnMap) => void;
}

type Way = readonly [text: string, choose: () => void];

function cureOf(
  { query, inspection, onChange }: CureProps,
  problem: NonNullable<Inspection['problem']>,
): readonly [string, readonly Way[]] {
  const { columns, map } = inspection;
  if (isKindMissing(inspection))
    return [
      'The records look like events, and do not say so. Add a column event_type that says track, or choose what they are.',
      ['users', 'companies'].map((entity) => [`They are ${entity}`, () => query.set({ entity })]),
    ];
  const isIdMissing = problem.error_code === 'unrecognised_columns';
  const proposed = columns.find(isId);
  const likely = columns.filter(({ filled }) => filled > 0).toSorted((a, b) => b.filled - a.filled);
  if (!isIdMissing || (proposed === undefined && likely.length === 0))
    return [`${problem.message} ${visibleText(problem.details)}`, []];
  const missing = 'No column is named user_id or company_id.';
  if (proposed !== undefined)
    return [`${missing} ${visibleText(proposed.name)} is proposed: ${proposed.reason}.`, []];
  const choose = (name: string) => () => onChange(withRole(map, columns, name, 'user_id'));
  return [
    `${missing} Which one says who the rows are about?`,
    likely.slice(0, mostOffered).map(({ name }) => [`${visibleText(name)} is the user id`, choose(name)]),
  ];
}

function Cure(props: CureProps): VNode | null {
  const { problem, read_as: readAs } = props.inspection;
  if (problem === null || readAs === null) return null;
  const [explanation, ways] = cureOf(props, problem);
  return (
    <Notice>
      <p>{explanation}</p>
      <p class="row">
        {ways.map(([text, choose]) => (
          <Button key={text} onClick={choose}>
            {text}
          </Button>
        ))}
      </p>
    </Notice>
  );
}

function Outcome({ query, inspection }: Inspected): VNode | null {
  const { records, whole_file: isWhole, columns, preset, entity } = inspection;
  if (preset !== null && isPreset(query, inspection))
    return (
      <p class="outcome">
        This is read as an export of <strong>{presetTitles[preset]}</strong>.
      </p>
    );
  const columnOf = (field: string) => columns.find(({ becomes }) => becomes === field);
  const isEvent = columnOf('event_name') !== undefined || columnOf('event_type') !== undefined;
  const user = entity === 'companies' && !isEvent ? undefined : columnOf('user_id');
  const company = columnOf('company_id');
  const profileKind = user === undefined ? 'company' : 'user';
  const kind = isEvent ? 'event' : profileKind;
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
  readonly inspection: Inspection;
  readonly onChange: (map: ColumnMap) => void;
}

function Becomes({ column, inspection, onChange }: BecomesProps): VNode {
  const { name, becomes } = column;
  const role = roleOf(column);
  const property = becomes?.startsWith(within) === true ? becomes.slice(within.length) : name;
  const typed = useTyped(property, (text) => {
    if (text !== '') onChange(withProperty(inspection.map, name, text));
  });
  const isProperty = role === 'property';
  return (
    <span class="two-lines" title={column.reason}>
      <span class="row becomes">
        <Select
          label={`What ${name} becomes`}
          value={role}
          options={role === 'other' ? [...roles, ['other', becomes ?? '']] : roles}
          onChange={(chosen) => onChange(withRole(inspection.map, inspection.columns, name, chosen as Role))}
        />
        {isProperty ? (
          <input
            type="text"
            aria-label={`Property that ${name} becomes`}
            {...typed}
            spellcheck={false}
            onInput={(event) => typed.onInput(event.currentTarget.value)}
          />
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
      {more > 0 ? <span class="faint">and {formatCount(more)} more</span> : null}
      {rule === null ? null : (
        <span class="faint">
          Looks personal; to protect it, add to the rules file: <code>{rule}</code>
        </span>
      )}
    </span>
  );
}
