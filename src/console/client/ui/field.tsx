import type { ComponentChildren, TargetedInputEvent, VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

/** A label above what it names, a hint below. */
export function Field({
  label,
  hint,
  children,
}: {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: ComponentChildren;
}): VNode {
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

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

/** A filter with few values. */
export function FilterSelect({ label, value, options, onChange }: SelectProps): VNode {
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

interface ChoicesProps {
  readonly label: string;
  /** Those that are chosen, with commas between; '': all. */
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

/** A filter of which several values may be chosen. It closes with Escape, or when it is left. */
export function FilterChoices({ label, value, options, onChange }: ChoicesProps): VNode {
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
          {words.length === 0
            ? 'All'
            : words.length > 2
              ? `${words[0]} and ${words.length - 1} more`
              : words.join(', ')}
        </summary>
        {/* Holds the focus that a press on it, beside a box, would take from all of them. */}
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

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly type?: 'search' | 'date';
  readonly onChange: (value: string) => void;
}

/** A filter that is typed. It takes effect with Enter, or when the field is left. */
export function FilterText({ label, value, placeholder, type = 'search', onChange }: TextProps): VNode {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const commit = (): void => {
    if (text.trim() !== value) onChange(text.trim());
  };
  const id = useId();
  const common = {
    id,
    value: text,
    autocomplete: 'off',
    onInput: (event: TargetedInputEvent<HTMLInputElement>) => setText(event.currentTarget.value),
    onBlur: commit,
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === 'Enter') commit();
    },
  };
  return (
    <div class="filter">
      <label class="field-label" for={id}>
        {label}
      </label>
      {type === 'date' ? (
        <input {...common} type="date" />
      ) : (
        <input {...common} type="search" placeholder={placeholder} spellcheck={false} />
      )}
    </div>
  );
}
