import type { VNode } from 'preact';
import { useId, useState } from 'preact/hooks';
import { useApi, useApiPage } from '../../console/client/lib/data.ts';
import { formatTime, plural, visibleText } from '../../console/client/lib/format.ts';
import { words } from '../../console/client/lib/profiles.ts';
import type { ExportFilter } from '../../console/client/part.ts';
import {
  Button,
  Check,
  Checks,
  Choices,
  FilterText,
  type FilterTextProps,
  named,
  type Options,
  Select,
  SelectField,
} from '../../console/client/ui/controls.tsx';
import { Problems, Section } from '../../console/client/ui/page.tsx';
import { exportFormatFacts, exportFormats } from '../../domain/export.ts';
import type { ExportItem } from '../api.ts';
import { type CoreField, type ExportWish, formatOf, listOf, optionFilters } from './request.tsx';

interface Part {
  readonly wish: ExportWish;
  readonly onChange: (change: Partial<ExportWish>) => void;
}

const kinds: Options = [
  ['users', 'Users'],
  ['companies', 'Companies'],
  ['events', 'All events'],
];

/** The page address contains the values of the form, so the values survive a reload. */
export function ExportForm(part: Part): VNode {
  const { wish, onChange } = part;
  return (
    <form class="stack" onSubmit={(event) => event.preventDefault()}>
      <Section title="What">
        <Checks
          label="Kinds (all, if none is chosen)"
          options={kinds}
          chosen={listOf(wish.kinds)}
          onChange={(chosen) => onChange({ kinds: chosen.join(',') })}
        />
      </Section>
      <Filters {...part} />
      <Section title="How">
        <Layout {...part} />
        <Text {...part} name="emails" label="E-mail to" placeholder="ada@example.com" />
      </Section>
    </form>
  );
}

interface Filter {
  readonly label: string;
  readonly fields: readonly string[];
  readonly control: (part: Part) => VNode;
}

function listFilter(label: string, name: CoreField, placeholder: string): Filter {
  const control = (part: Part) => <Text {...part} name={name} label={label} placeholder={placeholder} />;
  return { label, fields: [name], control };
}

function optionFilter({ label, field, Control }: ExportFilter): Filter {
  const control = ({ wish, onChange }: Part) => (
    <Control label={label} value={wish[field] ?? ''} onChange={(value) => onChange({ [field]: value })} />
  );
  return { label, fields: [field], control };
}

const filters: readonly Filter[] = [
  { label: 'Period', fields: ['from', 'to'], control: Period },
  { label: 'Changed since an export', fields: ['since', 'removed'], control: Since },
  ...optionFilters.map(optionFilter),
  listFilter('Ids of users', 'user_id', 'u1, u2'),
  listFilter('Ids of companies', 'company_id', 'acme'),
  { label: 'Only these events', fields: ['events'], control: Events },
  { label: 'Properties', fields: ['leave_out'], control: Columns },
  listFilter('Leave out', 'exclusions', 'user:test-*, event:heartbeat'),
];

function Filters(part: Part): VNode {
  const [added, setAdded] = useState<readonly string[]>([]);
  const isShown = ({ label, fields }: Filter): boolean =>
    added.includes(label) || fields.some((name) => (part.wish[name] ?? '') !== '');
  const remove = ({ label, fields }: Filter): void => {
    setAdded(added.filter((each) => each !== label));
    part.onChange(Object.fromEntries(fields.map((name) => [name, ''])));
  };
  const others = filters.filter((filter) => !isShown(filter));
  return (
    <Section title="Who and when">
      {filters.filter(isShown).map((filter) => (
        <div key={filter.label} class="row row-fields spread">
          <div class="row row-fields">
            <filter.control {...part} />
          </div>
          <Button look="quiet" onClick={() => remove(filter)}>
            {named('Remove', filter.label)}
          </Button>
        </div>
      ))}
      {others.length === 0 ? null : (
        <div class="row">
          <Select
            label="Add a filter"
            value=""
            options={[['', 'Add a filter …'], ...others.map(({ label }) => [label, label] as const)]}
            onChange={(label) => setAdded([...added, label])}
          />
        </div>
      )}
    </Section>
  );
}

function Period(part: Part): VNode {
  return (
    <>
      <Text {...part} name="from" label="From" placeholder="2026-11-01" />
      <Text {...part} name="to" label="To, a whole day of UTC" placeholder="2026-11-30" />
    </>
  );
}

function Events(part: Part): VNode {
  const events = useApi<readonly { readonly key: string }[]>(
    '/api/v1/analytics/exports/lookups/features_events',
  );
  const list = useId();
  return (
    <>
      <Problems error={events.error} onRetry={events.reload} />
      <Text
        {...part}
        name="events"
        label="Only these events"
        placeholder="report_shared, page_view"
        list={list}
      />
      <datalist id={list}>
        {events.data?.map(({ key }) => (
          <option key={key} value={key} />
        ))}
      </datalist>
    </>
  );
}

/** The new export contains only what has changed since the chosen export. */
function Since(part: Part): VNode {
  const { since } = part.wish;
  const page = useApiPage<ExportItem>('/api/v1/analytics/exports/jobs?status=completed&limit=50');
  const earlier = page.data?.items ?? [];
  const options = earlier.flatMap(({ cursor, start_time, rows }) =>
    cursor === null ? [] : [[cursor, `${formatTime(start_time)}, ${plural(rows, 'row')}`] as const],
  );
  const isOffered = since === '' || options.some(([cursor]) => cursor === since);
  return (
    <>
      <Problems error={page.error} onRetry={page.reload} />
      <SelectField
        label="Only what changed since an export"
        hint={since === '' ? undefined : 'Choose the same data as for that export.'}
        value={since}
        options={[['', 'Everything'], ...options, ...(isOffered ? [] : [[since, since] as const])]}
        onChange={(cursor) => part.onChange({ since: cursor })}
      />
      {since === '' ? null : <Switch {...part} name="removed" on="yes" label="Include what was removed" />}
    </>
  );
}

interface ChoiceProps {
  readonly name: CoreField;
  readonly label: string;
  readonly options: Options;
}

/** The first option is the default and has no parameter in the page address. */
function Choice({ wish, onChange, name, label, options }: Part & ChoiceProps): VNode {
  const usual = options[0]?.[0] ?? '';
  return (
    <Choices
      label={label}
      value={wish[name] || usual}
      options={options}
      onChange={(value) => onChange({ [name]: value === usual ? '' : value })}
    />
  );
}

interface SwitchProps {
  readonly name: CoreField;
  readonly label: string;
  /** Value in the page address when the switch is on. */
  readonly on: string;
}

function Switch({ wish, onChange, name, label, on }: Part & SwitchProps): VNode {
  const isOn = wish[name] === on;
  return <Check label={label} isOn={isOn} onChange={() => onChange({ [name]: isOn ? '' : on })} />;
}

const formats: Options = exportFormats.map((each) => [each, exportFormatFacts[each].label]);
const layouts: Options = [
  ['', 'As usual'],
  ['datasets', 'A file of each kind'],
  ['stream', 'One stream'],
];
const compressions: Options = [
  ['gzip', 'gzip'],
  ['none', 'None'],
];

function Layout(part: Part): VNode {
  const { isPackedInside, isForSpreadsheets } = formatOf(part.wish);
  return (
    <>
      <div class="row row-fields">
        <Choice {...part} name="format" label="Format" options={formats} />
        <Choice {...part} name="layout" label="Layout" options={layouts} />
        {isPackedInside ? null : (
          <Choice {...part} name="compression" label="Compression" options={compressions} />
        )}
      </div>
      {isForSpreadsheets ? (
        <Switch
          {...part}
          name="formulas"
          label="Leave cells as they are that a spreadsheet would run as a formula"
          on="keep"
        />
      ) : null}
    </>
  );
}

/** Further properties can be entered in the field "Leave out". */
const mostColumns = 200;

type Lookup = readonly { readonly key: string; readonly is_auto_property: boolean }[];

function Columns({ wish, onChange }: Part): VNode {
  const users = useApi<Lookup>(words.users.properties);
  const companies = useApi<Lookup>(words.companies.properties);
  const properties = [...(users.data ?? []), ...(companies.data ?? [])];
  // A list of terms cannot contain a name with a comma or a line break.
  const selectable = properties.filter(
    ({ key, is_auto_property }) => !is_auto_property && !/[,\n]/.test(key),
  );
  const all = [...new Set(selectable.map(({ key }) => key))].sort();
  const excluded = listOf(wish.leave_out);
  const visible = all.slice(0, mostColumns);
  return (
    <>
      <Problems error={users.error} onRetry={users.reload} />
      <Problems error={companies.error} onRetry={companies.reload} />
      <Checks
        label="Properties that are exported"
        options={visible.map((name) => [name, visibleText(name)])}
        chosen={visible.filter((name) => !excluded.includes(name))}
        onChange={(chosen) => {
          const others = excluded.filter((name) => !visible.includes(name));
          const leave = [...others, ...visible.filter((name) => !chosen.includes(name))];
          onChange({ leave_out: leave.join(',') });
        }}
      />
    </>
  );
}

type TextProps = Omit<FilterTextProps, 'value' | 'onChange'> & { readonly name: CoreField };

function Text({ wish, onChange, name, ...rest }: Part & TextProps): VNode {
  return (
    <FilterText {...rest} type="text" value={wish[name]} onChange={(text) => onChange({ [name]: text })} />
  );
}
