import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { exportFormatFacts, exportFormats } from '../../../domain/export-format.ts';
import { api } from '../lib/api.ts';
import { formatCount, plural, timeZone, visibleText } from '../lib/format.ts';
import { useData } from '../lib/use-data.ts';
import { Field } from '../ui/field.tsx';
import { Section } from '../ui/page.tsx';
import { Problems } from '../ui/problems.tsx';
import { formatOf, listOf, type Wish } from './export-wish.ts';
import { loadSegments, words } from './profile-record.ts';

type Change = Partial<Readonly<Record<keyof Wish, string>>>;
interface Part {
  readonly wish: Wish;
  readonly onChange: (change: Change) => void;
}

const lookups = '/api/v1/analytics/exports/lookups';

/** Its fields stand in the address, so that the form outlives the page. */
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

const kinds = [
  ['users', 'Users'],
  ['companies', 'Companies'],
  ['events', 'All events'],
] as const;

interface EventName {
  readonly key: string;
  readonly display_name: string;
}

function Kinds({ wish, onChange }: Part): VNode {
  const events = useData(`${lookups}/features_events`, (signal) =>
    api<readonly EventName[]>(`${lookups}/features_events`, { signal }),
  );
  const chosen = listOf(wish.kinds);
  const list = useId();
  return (
    <>
      <fieldset class="checks">
        <legend class="field-label">Kinds; if none is chosen, all</legend>
        {kinds.map(([kind, text]) => (
          <label key={kind}>
            <input
              type="checkbox"
              checked={chosen.includes(kind)}
              onChange={() => onChange({ kinds: toggled(chosen, kind).join(',') })}
            />
            {text}
          </label>
        ))}
      </fieldset>
      <Problems error={events.error} onRetry={events.reload} />
      <Text
        wish={wish}
        onChange={onChange}
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

function toggled(of: readonly string[], item: string): readonly string[] {
  return of.includes(item) ? of.filter((each) => each !== item) : [...of, item];
}

function Range({ wish, onChange }: Part): VNode {
  const zone = wish.zone === 'local' ? 'local' : 'utc';
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
        <select
          value={zone}
          onChange={(event) => onChange({ zone: event.currentTarget.value === 'local' ? 'local' : '' })}
        >
          <option value="utc">UTC</option>
          <option value="local">{timeZone}</option>
        </select>
      </Field>
    </div>
  );
}

function Whom({ wish, onChange }: Part): VNode {
  const segments = useData('segments', loadSegments);
  return (
    <>
      <Problems error={segments.error} onRetry={segments.reload} />
      <Field
        label="Segment"
        {...(segments.data?.isCut === true
          ? { hint: `The first ${formatCount(segments.data.data.length)} are offered.` }
          : {})}
      >
        <select
          value={wish.segment_id}
          onChange={(event) => onChange({ segment_id: event.currentTarget.value })}
        >
          <option value="">All users</option>
          {segments.data?.data.map(({ id, title }) => (
            <option key={id} value={String(id)}>
              {visibleText(title)}
            </option>
          ))}
        </select>
      </Field>
      <Text wish={wish} onChange={onChange} name="user_id" label="Ids of users" placeholder="u1, u2" />
      <Text wish={wish} onChange={onChange} name="company_id" label="Ids of companies" placeholder="acme" />
    </>
  );
}

function Layout({ wish, onChange }: Part): VNode {
  const format = wish.format === '' ? 'ndjson' : wish.format;
  const { isPackedInside, isForSpreadsheets } = formatOf(wish);
  return (
    <>
      <div class="row row-fields">
        <Choice
          label="Format"
          value={format}
          options={exportFormats.map((each) => [each, exportFormatFacts[each].label])}
          onChange={(value) => onChange({ format: value === 'ndjson' ? '' : value })}
        />
        <Choice
          label="Layout"
          value={wish.layout === 'stream' ? 'stream' : 'datasets'}
          options={[
            ['datasets', 'A file of each kind'],
            ['stream', 'One stream'],
          ]}
          onChange={(value) => onChange({ layout: value === 'datasets' ? '' : value })}
        />
        {isPackedInside ? null : (
          <Choice
            label="Compression"
            value={wish.compression === 'none' ? 'none' : 'gzip'}
            options={[
              ['gzip', 'gzip'],
              ['none', 'None'],
            ]}
            onChange={(value) => onChange({ compression: value === 'gzip' ? '' : value })}
          />
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

/** Properties beyond these are named in the field below. */
const mostColumns = 200;

function Columns({ wish, onChange }: Part): VNode {
  const users = useData(words.users.properties, read(words.users.properties));
  const companies = useData(words.companies.properties, read(words.companies.properties));
  const all = [...new Set([...(users.data ?? []), ...(companies.data ?? [])])].sort();
  const left = listOf(wish.leave_out);
  return (
    <details class="fold">
      <summary>
        Properties
        <span class="faint">
          {' '}
          {left.length === 0
            ? 'all of them'
            : `without ${left.length} of ${plural(all.length, 'property', 'properties')}`}
        </span>
      </summary>
      <Problems error={users.error ?? companies.error} />
      <fieldset class="checks">
        <legend class="visually-hidden">Properties that are exported</legend>
        {all.slice(0, mostColumns).map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={!left.includes(name)}
              onChange={() => onChange({ leave_out: toggled(left, name).join(',') })}
            />
            <span class="break">{visibleText(name)}</span>
          </label>
        ))}
      </fieldset>
    </details>
  );
}

/** Names with a comma or a line end cannot be said in a list of terms: they stay. */
function read(path: string) {
  return async (signal: AbortSignal): Promise<readonly string[]> => {
    const found = await api<readonly { readonly key: string; readonly is_auto_property: boolean }[]>(path, {
      signal,
    });
    return found.flatMap(({ key, is_auto_property }) => (is_auto_property || /[,\n]/.test(key) ? [] : [key]));
  };
}

function Choice({
  label,
  value,
  options,
  onChange,
}: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}): VNode {
  const name = useId();
  return (
    <fieldset class="field">
      <legend class="field-label">{label}</legend>
      <div class="choices">
        {options.map(([option, text]) => (
          <label key={option}>
            <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A list that is typed, with commas between its items; it takes effect with Enter, or when the field is left. */
function Text({
  wish,
  onChange,
  name,
  label,
  placeholder,
  list,
}: Part & {
  readonly name: keyof Wish;
  readonly label: string;
  readonly placeholder: string;
  readonly list?: string;
}): ComponentChildren {
  const [text, setText] = useState(wish[name]);
  useEffect(() => setText(wish[name]), [wish[name]]);
  const commit = (): void => {
    if (text !== wish[name]) onChange({ [name]: text });
  };
  return (
    <Field label={label}>
      <input
        class="wide"
        type="text"
        value={text}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        {...(list === undefined ? {} : { list })}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key === 'Enter') commit();
        }}
      />
    </Field>
  );
}
