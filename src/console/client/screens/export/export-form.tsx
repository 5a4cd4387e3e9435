import type { VNode } from 'preact';
import { useId } from 'preact/hooks';
import { exportFormatFacts, exportFormats } from '../../../../domain/export.ts';
import { api } from '../../lib/api.ts';
import { formatCount, plural, timeZone, visibleText } from '../../lib/format.ts';
import { useData } from '../../lib/use-data.ts';
import { Checks, Choices, Field, type Options, useTyped } from '../../ui/field.tsx';
import { Section } from '../../ui/page.tsx';
import { Problems } from '../../ui/problems.tsx';
import { loadSegments, words } from '../profiles/profile-record.ts';
import { formatOf, listOf, type Wish } from './export-wish.ts';

interface Part {
  readonly wish: Wish;
  readonly onChange: (change: Partial<Wish>) => void;
}

const lookups = '/api/v1/analytics/exports/lookups';

/** The form of an export. Its fields stand in the address, so that it outlives the page. */
export function ExportForm(part: Part): VNode {
  return (
    <form class="stack" onSubmit={(event) => event.preventDefault()}>
      <Section title="Data">
        <div class="stack">
          <Kinds {...part} />
          <Range {...part} />
        </div>
      </Section>
      <Section title="Users and companies">
        <div class="stack">
          <Whom {...part} />
        </div>
      </Section>
      <Section title="Output">
        <div class="stack">
          <Layout {...part} />
          <Columns {...part} />
          <Text {...part} name="exclusions" label="Leave out" placeholder="user:test-*, event:heartbeat" />
          <Text {...part} name="emails" label="E-mail to" placeholder="ada@example.com" />
        </div>
      </Section>
    </form>
  );
}

const kinds: Options = [
  ['users', 'Users'],
  ['companies', 'Companies'],
  ['events', 'All events'],
];

function Kinds(part: Part): VNode {
  const { wish, onChange } = part;
  const path = `${lookups}/features_events`;
  const events = useData(path, (signal) => api<readonly { readonly key: string }[]>(path, { signal }));
  const list = useId();
  return (
    <>
      <Checks
        label="Kinds; if none is chosen, all"
        options={kinds}
        chosen={listOf(wish.kinds)}
        onChange={(chosen) => onChange({ kinds: chosen.join(',') })}
      />
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

function Range({ wish, onChange }: Part): VNode {
  return (
    <div class="row row-fields">
      <Field label="From">
        <input
          type="date"
          value={wish.from}
          onChange={(event) => onChange({ from: event.currentTarget.value })}
        />
      </Field>
      <Field label="To, included">
        <input
          type="date"
          value={wish.to}
          onChange={(event) => onChange({ to: event.currentTarget.value })}
        />
      </Field>
      <Field label="Time zone">
        <select value={wish.zone} onChange={(event) => onChange({ zone: event.currentTarget.value })}>
          <option value="">UTC</option>
          <option value="local">{timeZone}</option>
        </select>
      </Field>
    </div>
  );
}

function Whom(part: Part): VNode {
  const { wish, onChange } = part;
  const { data, error, reload } = useData('segments', loadSegments);
  const hint = data?.isCut === true ? { hint: `Offers the first ${formatCount(data.data.length)}.` } : {};
  return (
    <>
      <Problems error={error} onRetry={reload} />
      <Field label="Segment" {...hint}>
        <select
          value={wish.segment_id}
          onChange={(event) => onChange({ segment_id: event.currentTarget.value })}
        >
          <option value="">All users</option>
          {data?.data.map(({ id, title }) => (
            <option key={id} value={String(id)}>
              {visibleText(title)}
            </option>
          ))}
        </select>
      </Field>
      <Text {...part} name="user_id" label="Ids of users" placeholder="u1, u2" />
      <Text {...part} name="company_id" label="Ids of companies" placeholder="acme" />
    </>
  );
}

/** A choice whose first option is the default, which does not stand in the address. */
function Choice({ wish, onChange, name, label, options }: Part & ChoiceProps): VNode {
  const usual = options[0]?.[0] ?? '';
  return (
    <Choices
      label={label}
      value={wish[name] === '' ? usual : wish[name]}
      options={options}
      onChange={(value) => onChange({ [name]: value === usual ? '' : value })}
    />
  );
}

interface ChoiceProps {
  readonly name: keyof Wish;
  readonly label: string;
  readonly options: Options;
}

const formats: Options = exportFormats.map((each) => [each, exportFormatFacts[each].label]);
const layouts: Options = [
  ['datasets', 'A file of each kind'],
  ['stream', 'One stream'],
];
const compressions: Options = [
  ['gzip', 'gzip'],
  ['none', 'None'],
];

function Layout(part: Part): VNode {
  const { wish, onChange } = part;
  const { isPackedInside, isForSpreadsheets } = formatOf(wish);
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
        <label class="check">
          <input
            type="checkbox"
            checked={wish.formulas !== 'keep'}
            onChange={() => onChange({ formulas: wish.formulas === 'keep' ? '' : 'keep' })}
          />
          Defuse cells that a spreadsheet would run as a formula
        </label>
      ) : null}
    </>
  );
}

/** Properties beyond these are named in the field "Leave out". */
const mostColumns = 200;

function Columns({ wish, onChange }: Part): VNode {
  const users = useData(words.users.properties, read(words.users.properties));
  const companies = useData(words.companies.properties, read(words.companies.properties));
  const all = [...new Set([...(users.data ?? []), ...(companies.data ?? [])])].sort();
  const left = listOf(wish.leave_out);
  const shown = all.slice(0, mostColumns);
  const summary =
    left.length === 0
      ? 'all of them'
      : `without ${left.length} of ${plural(all.length, 'property', 'properties')}`;
  return (
    <details class="fold">
      <summary>
        Properties <span class="faint">{summary}</span>
      </summary>
      <Problems error={users.error ?? companies.error} />
      <Checks
        label="Properties that are exported"
        isLabelHidden
        options={shown.map((name) => [name, visibleText(name)])}
        chosen={shown.filter((name) => !left.includes(name))}
        onChange={(chosen) => {
          const others = left.filter((name) => !shown.includes(name));
          const leave = [...others, ...shown.filter((name) => !chosen.includes(name))];
          onChange({ leave_out: leave.join(',') });
        }}
      />
    </details>
  );
}

/** Loads the names of properties, without those that a list of terms cannot hold because of a comma or a line end. */
function read(path: string) {
  return async (signal: AbortSignal): Promise<readonly string[]> => {
    const found = await api<readonly { readonly key: string; readonly is_auto_property: boolean }[]>(path, {
      signal,
    });
    return found.flatMap(({ key, is_auto_property }) => (is_auto_property || /[,\n]/.test(key) ? [] : [key]));
  };
}

interface TextProps {
  readonly name: keyof Wish;
  readonly label: string;
  readonly placeholder: string;
  /** Id of a list of values to choose from. */
  readonly list?: string;
}

/** A list that is typed, with commas between its items. */
function Text({ wish, onChange, name, label, ...rest }: Part & TextProps): VNode {
  const typed = useTyped(wish[name], (text) => onChange({ [name]: text }));
  return (
    <Field label={label}>
      <input {...typed} {...rest} class="wide" type="text" autocomplete="off" spellcheck={false} />
    </Field>
  );
}
