import type { ComponentChildren, TargetedFocusEvent, TargetedInputEvent, VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

export type Options = readonly (readonly [value: string, text: string])[];

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A label above its control, a hint below. */
export function Field({ label, hint, children }: FieldProps): VNode {
  return (
    <div class="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is in it */}
      <label>
        <span class="field-label">{label}</span>
        {children}
      </label>
      {hint === undefined ? null : <p class="hint">{hint}</p>}
    </div>
  );
}

interface ValueProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** Radio buttons that look like one control. */
export function Choices(
  props: ValueProps & { readonly options: Options; readonly isLabelHidden?: boolean },
): VNode {
  const { label, value, options, onChange, isLabelHidden = false } = props;
  const name = useId();
  const choices = options.map(([option, text]) => (
    <label key={option}>
      <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
      <span>{text}</span>
    </label>
  ));
  return isLabelHidden ? (
    <fieldset class="choices">
      <legend class="visually-hidden">{label}</legend>
      {choices}
    </fieldset>
  ) : (
    <fieldset class="field">
      <legend class="field-label">{label}</legend>
      <div class="choices">{choices}</div>
    </fieldset>
  );
}

interface ChecksProps<T extends string> {
  readonly label: string;
  readonly isLabelHidden?: boolean;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly chosen: readonly T[];
  readonly onChange: (chosen: readonly T[]) => void;
}

/** Any of several values. */
export function Checks<T extends string>(props: ChecksProps<T>): VNode {
  const { label, isLabelHidden = false, options, chosen, onChange } = props;
  const toggle = (value: T): void =>
    onChange(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value]);
  return (
    <fieldset class="checks">
      <legend class={isLabelHidden ? 'visually-hidden' : 'field-label'}>{label}</legend>
      {options.map(([value, text]) => (
        <label key={value}>
          <input type="checkbox" checked={chosen.includes(value)} onChange={() => toggle(value)} />
          <span class="break">{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface TypedInput {
  readonly value: string;
  readonly onInput: (event: TargetedInputEvent<HTMLInputElement>) => void;
  readonly onBlur: (event: TargetedFocusEvent<HTMLInputElement>) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/** The properties of an input whose text takes effect with Enter, or when the field is left. */
export function useTyped(value: string, onChange: (value: string) => void): TypedInput {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const commit = (): void => {
    if (text !== value) onChange(text);
  };
  return {
    value: text,
    onInput: (event) => setText(event.currentTarget.value),
    onBlur: commit,
    onKeyDown: ({ key }) => {
      if (key === 'Enter') commit();
    },
  };
}

/** A filter with few values. */
export function FilterSelect({
  label,
  value,
  options,
  onChange,
}: ValueProps & { readonly options: Options }): VNode {
  return (
    <label class="filter">
      <span class="field-label">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A filter of which several values may be chosen: with commas between, or '' for all. Escape closes it. */
export function FilterChoices({
  label,
  value,
  options,
  onChange,
}: ValueProps & { readonly options: Options }): VNode {
  const details = useRef<HTMLDetailsElement>(null);
  const chosen = value === '' ? [] : value.split(',');
  const close = (): void => {
    if (details.current !== null) details.current.open = false;
  };
  const toggle = (option: string): void => {
    const next = options.map(([each]) => each).filter((each) => chosen.includes(each) !== (each === option));
    onChange(next.length === options.length ? '' : next.join(','));
  };
  const words = options.filter(([option]) => chosen.includes(option)).map(([, text]) => text);
  const summary = words.length > 2 ? `${words[0]} and ${words.length - 1} more` : words.join(', ') || 'All';
  return (
    <fieldset class="filter">
      <legend class="field-label">{label}</legend>
      <details
        ref={details}
        class="filter-choices"
        onFocusOut={({ currentTarget, relatedTarget }) => {
          if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) close();
        }}
        onKeyDown={({ key }) => {
          if (key !== 'Escape') return;
          close();
          details.current?.querySelector('summary')?.focus();
        }}
      >
        <summary>
          <span class="visually-hidden">{label}: </span>
          {summary}
        </summary>
        {/* Takes the focus of a press beside a box, which would otherwise leave the filter and close it. */}
        <div class="filter-choices-list" tabIndex={-1}>
          {options.map(([option, text]) => (
            <label key={option}>
              <input type="checkbox" checked={chosen.includes(option)} onChange={() => toggle(option)} />
              {text}
            </label>
          ))}
        </div>
      </details>
    </fieldset>
  );
}

interface TextProps extends ValueProps {
  readonly placeholder?: string;
  readonly type?: 'search' | 'date';
}

/** A filter that is typed. It takes effect with Enter, or when the field is left. */
export function FilterText({ label, value, placeholder, type = 'search', onChange }: TextProps): VNode {
  const typed = useTyped(value, (text) => onChange(text.trim()));
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is in it
    <label class="filter">
      <span class="field-label">{label}</span>
      {type === 'date' ? (
        <input {...typed} type="date" />
      ) : (
        <input {...typed} type="search" placeholder={placeholder} autocomplete="off" spellcheck={false} />
      )}
    </label>
  );
}
