import type { VNode } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { EventPropertyPage, Property } from '../../../../api/definition.ts';
import { useApi, useApiPage, withQuery } from '../../lib/api.ts';
import type { Profile } from '../../lib/jobs.ts';
import { Button, Field, InputField, type Options, SelectField } from '../../ui/controls.tsx';
import { iconOnly } from '../../ui/drawings.tsx';
import {
  type Group,
  groupKinds,
  groupOf,
  type Node,
  newCondition,
  nodeOf,
  type Operator,
  operandIn,
  operandOf,
  operatorOf,
  operatorWords,
  readValue,
  type Subject,
  subjectOf,
  subjects,
  textOf,
  withOperator,
} from './condition.ts';

interface Known {
  readonly key: string;
  readonly data_type: string;
}
/** What the data has shown, to choose from. */
type KnownNames = Readonly<Record<Subject | 'event_property', readonly Known[]>>;

interface Part<T> {
  readonly of: T;
  readonly known: KnownNames;
  readonly onChange: (changed: T) => void;
}

const lookups = '/api/v1/analytics/exports/lookups';
const ids = (...keys: string[]): Known[] => keys.map((key) => ({ key, data_type: 'string' }));

/** Puts a definition together out of known properties, companies and events. */
export function Builder({ of, onChange }: Omit<Part<Node>, 'known'>): VNode {
  const users = useApi<readonly Property[]>(`${lookups}/user_properties`).data ?? [];
  const companies = useApi<readonly Property[]>(`${lookups}/company_properties`).data ?? [];
  const event = useApi<readonly Known[]>(`${lookups}/features_events`).data ?? [];
  const ofEvents = useApi<EventPropertyPage>(`${lookups}/events_properties?limit=200`).data?.data ?? [];
  const known = {
    property: [...ids('user_id', 'company_id'), ...users],
    company_property: [...ids('company_id'), ...companies],
    event,
    event_property: ofEvents,
  };
  const group = groupOf(of) ?? { kind: 'all', items: [of] };
  return <Members of={group} known={known} onChange={(changed) => onChange(nodeOf(changed))} />;
}

const kinds: Options = Object.entries(groupKinds);

/** A group: its conditions and the groups within. */
function Members({ of: { kind, items }, known, onChange }: Part<Group>): VNode {
  const set = (at: number, ...changed: readonly Node[]): void =>
    onChange({ kind, items: items.toSpliced(at, 1, ...changed) });
  const add = (node: Node) => () => onChange({ kind, items: [...items, node] });
  return (
    <fieldset class="group stack">
      <legend class="visually-hidden">Group</legend>
      <SelectField
        label="Users who match"
        value={kind}
        options={kinds}
        onChange={(chosen) => onChange({ kind: chosen as Group['kind'], items })}
      />
      {items.map((item, at) => (
        <Member key={at} of={item} known={known} onChange={(changed) => set(at, changed)}>
          {items.length === 1 ? null : <Remove onClick={() => set(at)} />}
        </Member>
      ))}
      <div class="row">
        <Button onClick={add(newCondition.property)}>Add a property</Button>
        <Button onClick={add(newCondition.company_property)}>Add a company property</Button>
        <Button onClick={add(newCondition.event)}>Add an event</Button>
        <Button look="quiet" onClick={add({ any: [newCondition.property] })}>
          Add a group
        </Button>
      </div>
    </fieldset>
  );
}

interface Removable {
  /** The button that takes it away. */
  readonly children: VNode | null;
}

function Remove({ onClick }: { readonly onClick: () => void }): VNode {
  return (
    <Button look="quiet button-icon" onClick={onClick}>
      {iconOnly('close', 'Remove')}
    </Button>
  );
}

function Member({ children, ...part }: Part<Node> & Removable): VNode {
  const { of, known, onChange } = part;
  const group = groupOf(of);
  if (group !== null) {
    return (
      <div class="row row-fields">
        <Members of={group} known={known} onChange={(changed) => onChange(nodeOf(changed))} />
        {children}
      </div>
    );
  }
  const subject = subjectOf(of);
  if (subject === 'event') return <Happened {...part}>{children}</Happened>;
  return (
    <Compared {...part} subject={subject} names={known[subject]} label={subjects[subject]}>
      {children}
    </Compared>
  );
}

interface ComparedProps extends Part<Node>, Removable {
  readonly subject: 'property' | 'company_property';
  readonly names: readonly Known[];
  readonly label: string;
}

/** A property and what it is compared with. */
function Compared({ of, onChange, subject, names, label, children }: ComparedProps): VNode {
  const name = String(of[subject]);
  const operator = operatorOf(of);
  const operand = operandOf(operator);
  const type = names.find(({ key }) => key === name)?.data_type ?? 'string';
  const compare = (text: string): void =>
    onChange({ [subject]: name, [operator]: readValue(text, operand, type) });
  return (
    <div class="row row-fields">
      <Named
        label={label}
        value={name}
        names={names}
        onInput={(text) => onChange({ ...of, [subject]: text })}
      />
      <SelectField
        label="Operator"
        value={operator}
        options={operatorWords}
        onChange={(chosen) => onChange(withOperator(of, subject, chosen as Operator, type))}
      />
      {operand === 'none' ? null : (
        <Typed
          value={operandIn(of)}
          isList={operand === 'list'}
          isCompany={name === 'company_id'}
          read={(text) => readValue(text, operand, type)}
          onInput={compare}
        />
      )}
      {children}
    </div>
  );
}

interface NamedProps {
  readonly label: string;
  readonly value: string;
  readonly names: readonly Pick<Known, 'key'>[];
  readonly onInput: (text: string) => void;
}

/** A name, typed or chosen from those that are known. */
function Named({ label, value, names, onInput }: NamedProps): VNode {
  const list = useId();
  return (
    <>
      <InputField label={label} value={value} list={list} onInput={onInput} />
      <datalist id={list}>
        {names.map(({ key }) => (
          <option key={key} value={key} />
        ))}
      </datalist>
    </>
  );
}

interface TypedProps {
  readonly value: unknown;
  readonly isList: boolean;
  readonly isCompany: boolean;
  readonly read: (text: string) => unknown;
  readonly onInput: (text: string) => void;
}

/** The value, with what was typed kept as long as it means the same. */
function Typed({ value, isList, isCompany, read, onInput }: TypedProps): VNode {
  const [typed, setTyped] = useState(textOf(value));
  const text = JSON.stringify(read(typed)) === JSON.stringify(value) ? typed : textOf(value);
  const input = (next: string): void => {
    setTyped(next);
    onInput(next);
  };
  const path = withQuery('/v1/companies', { limit: 50, id_prefix: text });
  const companies = useApiPage<Profile>(isCompany && !isList ? path : null).data?.items ?? [];
  if (!isList) {
    const names = companies.flatMap(({ company_id: key }) => (key === null ? [] : [{ key }]));
    return <Named label="Value" value={text} names={names} onInput={input} />;
  }
  return (
    <Field label="Values, one per line">
      <textarea rows={3} value={text} onInput={(event) => input(event.currentTarget.value)} />
    </Field>
  );
}

const often: Options = [
  ['did', 'did'],
  ['never', 'never did'],
];
const counts = [
  ['at_least', 'At least', '1 time'],
  ['at_most', 'At most', 'any'],
] as const;

/** An event, how often it happened, within how many days, and of which properties. */
function Happened({ of, known, onChange, children }: Part<Node> & Removable): VNode {
  const { event, never, where = [], within_days, ...bounds } = of;
  const properties = where as readonly Node[];
  const without = (name: string): Node =>
    Object.fromEntries(Object.entries(of).filter(([each]) => each !== name));
  const set = (name: string, text: string): void =>
    onChange(text === '' ? without(name) : { ...of, [name]: readValue(text, 'days', '') });
  const setWhere = (changed: readonly Node[]): void =>
    onChange(changed.length === 0 ? without('where') : { ...of, where: changed });
  const setNever = (how: string): void => {
    const kept = Object.fromEntries(
      Object.entries(of).filter(([name]) => name !== 'never' && !(name in bounds)),
    );
    onChange({ ...kept, event, ...(how === 'never' && { never: true }) });
  };
  return (
    <div class="stack">
      <div class="row row-fields">
        <SelectField
          label="How often"
          value={never === true ? 'never' : 'did'}
          options={often}
          onChange={setNever}
        />
        <Named
          label={subjects.event}
          value={String(event)}
          names={known.event}
          onInput={(text) => onChange({ ...of, event: text })}
        />
        {never === true
          ? null
          : counts.map(([name, label, placeholder]) => (
              <InputField
                key={name}
                label={label}
                placeholder={placeholder}
                class="short"
                value={textOf(of[name])}
                onInput={(text) => set(name, text)}
              />
            ))}
        <InputField
          label="In the last days"
          placeholder="ever"
          value={textOf(within_days)}
          class="short"
          onInput={(text) => set('within_days', text)}
        />
        <Button look="quiet" onClick={() => setWhere([...properties, newCondition.property])}>
          Add an event property
        </Button>
        {children}
      </div>
      {properties.map((condition, at) => (
        <Compared
          key={at}
          of={condition}
          known={known}
          subject="property"
          names={known.event_property}
          label="Property of the event"
          onChange={(changed) => setWhere(properties.toSpliced(at, 1, changed))}
        >
          <Remove onClick={() => setWhere(properties.toSpliced(at, 1))} />
        </Compared>
      ))}
    </div>
  );
}
