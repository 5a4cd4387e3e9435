import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Inspection } from '../../../../api/inspection.ts';
import type { Query } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { formatCount, formatShare, plural, visibleText } from '../../lib/format.ts';
import type { InspectedColumn } from '../../lib/records.ts';
import { useAction } from '../../lib/use-data.ts';
import { Button } from '../../ui/button.tsx';
import { Field, FilterSelect, useTyped } from '../../ui/field.tsx';
import { Section } from '../../ui/page.tsx';
import { Notice, Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Value, VisibleText } from '../../ui/text.tsx';
import { propertyOf, type Role, roleOf, withProperty, withRole } from './column-role.ts';
import { optionsOf } from './inspection.ts';
import { Outcome } from './outcome.tsx';
import { StartPlan } from './plan.tsx';

interface Props {
  readonly query: Query;
  readonly found: Inspection;
}

/** Shows what each column becomes. The server reads the file again with each choice. */
export function Columns({ query, found }: Props): VNode {
  const choose = (map: Readonly<Record<string, string>>): void =>
    query.set({ map: JSON.stringify(map), mapping: undefined, plan: undefined }, { replace: true });
  const columns: readonly Column<InspectedColumn>[] = [
    {
      title: 'Column',
      cell: ({ name }) => (
        <span class="column-name">
          <VisibleText text={name} />
        </span>
      ),
    },
    { title: 'Becomes', cell: (column) => <Becomes column={column} found={found} onChange={choose} /> },
    { title: 'Type', is: 'minor', cell: ({ type }) => <span class="muted">{type ?? '–'}</span> },
    {
      title: 'Filled',
      is: 'num',
      cell: (column) => <Filled column={column} records={found.records - found.rejects.count} />,
    },
    { title: 'Values', cell: (column) => <Values column={column} /> },
  ];
  return (
    <>
      <ProblemNotice found={found} />
      <Outcome query={query} found={found} />
      <div class="load-columns">
        <Section
          title={plural(found.columns.length, 'column')}
          aside={<SavedMappings query={query} found={found} />}
          flush
        >
          <Table
            caption="Columns of the file"
            columns={columns}
            rows={found.columns}
            keyOf={({ name }) => name}
          />
        </Section>
      </div>
      <SaveMapping query={query} found={found} />
      <div class="step-foot">
        <StartPlan query={query} found={found} />
      </div>
    </>
  );
}

/** Says why the file cannot be loaded as it is, and what is proposed. */
function ProblemNotice({ found }: { readonly found: Inspection }): VNode | null {
  const { problem, columns } = found;
  const proposed = columns.find(({ becomes, reason }) => becomes !== null && /looks like/.test(reason));
  if (problem === null) return null;
  if (proposed !== undefined) {
    const text = `No column is named user_id or company_id. ${visibleText(proposed.name)} is proposed: ${proposed.reason}.`;
    return <Notice>{text}</Notice>;
  }
  return <Notice>{`${problem.message} ${visibleText(problem.details)}`}</Notice>;
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
  readonly onChange: (map: Inspection['map']) => void;
}

function Becomes({ column, found, onChange }: BecomesProps): VNode {
  const role = roleOf(column);
  const shown = role === 'other' ? [...roles, ['other', column.becomes ?? ''] as const] : roles;
  const property = propertyOf(column);
  const typed = useTyped(property, (name) => {
    if (name.trim() !== '') onChange(withProperty(found.map, column.name, name));
  });
  return (
    <span class="becomes" title={column.reason}>
      <select
        aria-label={`What ${column.name} becomes`}
        value={role}
        onChange={(event) =>
          onChange(withRole(found.map, found.columns, column.name, event.currentTarget.value as Role))
        }
      >
        {shown.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      {role === 'property' ? (
        <input
          type="text"
          aria-label={`Property that ${column.name} becomes`}
          {...typed}
          spellcheck={false}
        />
      ) : null}
    </span>
  );
}

function Filled({ column, records }: { readonly column: InspectedColumn; readonly records: number }): VNode {
  return (
    <span class="filled">
      {formatShare(column.filled, records)}
      <span class="filled-bar" aria-hidden="true">
        <span
          class="filled-part"
          style={{ inlineSize: `${(100 * column.filled) / Math.max(1, records)}%` }}
        />
      </span>
    </span>
  );
}

function Values({ column }: { readonly column: InspectedColumn }): VNode {
  const { frequent, distinct } = column;
  if (frequent.length === 0) return <span class="faint">–</span>;
  const more = distinct - frequent.length;
  return (
    <span class="values">
      {frequent.map(({ value, count }) => (
        <span key={JSON.stringify(value)} class="value">
          <span class="value-text">
            <Value of={value} />
          </span>
          <span class="value-count num">{formatCount(count)}</span>
        </span>
      ))}
      {more > 0 ? <span class="faint nowrap">and {formatCount(more)} more</span> : null}
    </span>
  );
}

/** Offers the saved mappings for files with these columns. */
function SavedMappings({ query, found }: Props): VNode | null {
  const { saved_mappings: saved, mapping } = found;
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

function SaveMapping({ query, found }: Props): VNode {
  const [name, setName] = useState('');
  const [saved, setSaved] = useState('');
  const save = useAction(async () => {
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
    setSaved(name);
    query.set({ mapping: name, map: undefined }, { replace: true });
  });
  return (
    <details class="save-mapping">
      <summary>Save this mapping for later files</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save.run();
        }}
      >
        <Field
          label="Name of the mapping"
          hint="Small letters, digits, - and _. It is offered for files with the same columns."
        >
          <input
            type="text"
            required
            pattern="[a-z0-9][a-z0-9_\-]{0,62}"
            value={name}
            autocomplete="off"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
        <Button type="submit" needs="import" disabled={save.isRunning}>
          Save the mapping
        </Button>
        <p aria-live="polite" class="hint">
          {saved === '' ? '' : `Saved as ${saved}.`}
        </p>
      </form>
      <Problems error={save.error} />
    </details>
  );
}
