import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Inspection } from '../../../../api/upload.ts';
import { presetTitles } from '../../../../domain/load.ts';
import { personalRule } from '../../../../domain/personal.ts';
import { api, type Query } from '../../lib/api.ts';
import { formatCount, formatShare, plural, visibleText } from '../../lib/format.ts';
import type { InspectedColumn } from '../../lib/jobs.ts';
import { FilterSelect, InputField, mappingName, Select, useTyped } from '../../ui/controls.tsx';
import { DialogButton, FormDialog } from '../../ui/dialog.tsx';
import { Notice, Value, VisibleText } from '../../ui/page.tsx';
import { type Column, TableSection } from '../../ui/table.tsx';
import { type Inspected, isPreset, mapOf, optionsOf } from './inspection.ts';
import { StartPlan } from './plan.tsx';

type Role = 'user_id' | 'company_id' | 'property' | 'ignore' | 'other';
type Map = Readonly<Record<string, string>>;

const ids: readonly string[] = ['user_id', 'company_id'];
/** Names that mean something of their own: a property of such a name is written with `metadata.` before it. */
const fixed: ReadonlySet<string> = new Set([
  ...[...ids, 'metadata', 'first_seen_at', 'last_seen_at', 'event_type', 'event_id', 'insert_id'],
  ...['event_name', 'source', 'inserted_at', 'url'],
]);
const within = 'metadata.';

function roleOf({ becomes }: InspectedColumn): Role {
  if (becomes === null) return 'ignore';
  if (ids.includes(becomes)) return becomes as Role;
  return becomes.startsWith(within) ? 'property' : 'other';
}

/**
 * Returns the inspection under the page's current map, whatever map the answer is about: a choice shows at once, and an answer
 * that was already on its way does not revert it.
 */
export function withChoices(query: Query, found: Inspection): Inspection {
  const map = mapOf(query);
  if (map === null) return found;
  const columns = found.columns.map((column) => {
    const ours = map[column.name];
    return ours === found.map[column.name] ? column : { ...column, becomes: becomesOf(column.name, ours) };
  });
  return { ...found, map, columns };
}

function becomesOf(name: string, ours = within + name): string | null {
  if (ours === '') return null;
  return fixed.has(ours) || ours.startsWith(within) ? ours : within + ours;
}

/** Returns the map with another role for a column. An id belongs to one column: another that had it becomes a property. */
function withRole(map: Map, columns: readonly InspectedColumn[], name: string, role: Role): Map {
  if (role === 'other') return map;
  if (role === 'property') return withProperty(map, name, name);
  if (role === 'ignore') return { ...map, [name]: '' };
  const before = columns.find((column) => column.becomes === role && column.name !== name);
  const freed = before === undefined ? map : withProperty(map, before.name, before.name);
  return { ...freed, [name]: role };
}

/** Returns the map with another name for the property that a column becomes. */
function withProperty(map: Map, name: string, property: string): Map {
  const { [name]: _before, ...others } = map;
  const ours = fixed.has(property) ? within + property : property;
  return ours === name ? others : { ...others, [name]: ours };
}

/** Shows what each column becomes. The server reads the file again with each choice. */
export function Columns({ query, found }: Inspected): VNode {
  const choose = (map: Map): void =>
    query.set(
      { map: JSON.stringify(map), mapping: undefined, preset: undefined, plan: undefined },
      { replace: true },
    );
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
    ['Type', ({ type }) => <span class="muted">{type ?? '–'}</span>, 'minor'],
    ['Filled', ({ filled }) => filledOf(filled, found.records - found.rejects.count), 'num'],
    ['Values', valuesOf],
  ];
  return (
    <>
      {isPreset(query, found) ? null : <ProblemNotice found={found} />}
      <Outcome query={query} found={found} />
      <TableSection
        title={plural(found.columns.length, 'column')}
        aside={<SavedMappings query={query} found={found} />}
        of={found.columns}
        caption="Columns of the file"
        isTall
        columns={columns}
        keyOf={({ name }) => name}
      />
      <div class="row">
        <StartPlan query={query} found={found} />
        {isPreset(query, found) ? null : <SaveMapping query={query} found={found} />}
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
  readonly onChange: (map: Map) => void;
}

function Becomes({ column, found, onChange }: BecomesProps): VNode {
  const { name, becomes } = column;
  const role = roleOf(column);
  const property = becomes?.startsWith(within) === true ? becomes.slice(within.length) : name;
  const typed = useTyped(property, (text) => {
    if (text.trim() !== '') onChange(withProperty(found.map, name, text));
  });
  return (
    <span class="row becomes" title={column.reason}>
      <Select
        label={`What ${name} becomes`}
        value={role}
        options={role === 'other' ? [...roles, ['other', becomes ?? '']] : roles}
        onChange={(chosen) => onChange(withRole(found.map, found.columns, name, chosen as Role))}
      />
      {role === 'property' ? (
        <input type="text" aria-label={`Property that ${name} becomes`} {...typed} spellcheck={false} />
      ) : null}
    </span>
  );
}

function filledOf(filled: number, records: number): VNode {
  return (
    <span class="filled">
      {formatShare(filled, records)}
      <progress max={Math.max(1, records)} value={filled} aria-hidden="true" />
    </span>
  );
}

function valuesOf({ becomes, looks_like, frequent, distinct }: InspectedColumn): VNode {
  const rule = personalRule(becomes, looks_like);
  if (frequent.length === 0) return <span class="faint">–</span>;
  const more = distinct - frequent.length;
  return (
    <span class="row values">
      {frequent.map(({ value, count }) => (
        <span key={JSON.stringify(value)} class="tag">
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

/** Offers the saved mappings for files with these columns. */
function SavedMappings({ query, found: { saved_mappings: saved, mapping } }: Inspected): VNode | null {
  const names = mapping === null || saved.includes(mapping) ? saved : [mapping, ...saved];
  if (names.length === 0) return null;
  return (
    <FilterSelect
      label="Saved mapping"
      value={query.get('mapping') || (query.get('map') === '' ? (mapping ?? '') : '')}
      options={[['', 'None'], ...names.map((name) => [name, name] as const)]}
      onChange={(name) => query.set({ mapping: name, map: undefined, plan: undefined }, { replace: true })}
    />
  );
}

/** The options that a saved mapping keeps beside the columns. */
const kept = ['encoding', 'delimiter', 'quote', 'header', 'sheet', 'entity'];

function SaveMapping({ query, found }: Inspected): VNode {
  const [name, setName] = useState('');
  const save = async (): Promise<void> => {
    const { header, ...options } = Object.fromEntries(
      Object.entries(optionsOf(query)).filter(([option]) => kept.includes(option)),
    );
    const body = {
      ...options,
      ...(header === undefined ? {} : { header: header === 'none' ? header : Number(header) }),
      map: found.map,
      ...(found.column_names === null ? {} : { column_names: found.column_names }),
    };
    await api(`/v1/mappings/${encodeURIComponent(name)}`, { method: 'PUT', body });
    query.set({ mapping: name, map: undefined }, { replace: true });
  };
  return (
    <DialogButton look="quiet" needs="import" label="Save this mapping for later files …">
      {(close) => (
        <FormDialog title="Save the mapping" verb="Save" isComplete={name !== ''} act={save} onClose={close}>
          <InputField
            label="Name of the mapping"
            hint="Small letters, digits, - and _. It is offered for files with the same columns."
            pattern={mappingName}
            value={name}
            onInput={setName}
          />
        </FormDialog>
      )}
    </DialogButton>
  );
}
