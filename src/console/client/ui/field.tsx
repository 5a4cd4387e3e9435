import type { ComponentChildren, TargetedInputEvent, VNode } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';

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
