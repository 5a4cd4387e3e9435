import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Scope } from '../../../domain/caller.ts';
import { mayUse } from '../lib/api.ts';
import { useAction } from '../lib/data.ts';
import { Icon } from './drawings.tsx';
import { Problems } from './page.tsx';

export type Options = readonly (readonly [value: string, text: string])[];

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Field({ label, hint, children }: FieldProps): VNode {
  return (
    <div class="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is in it */}
      <label class="field">
        <span class="field-label">{label}</span>
        {children}
      </label>
      {hint === undefined ? null : <p class="hint">{hint}</p>}
    </div>
  );
}

interface InputProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly value: string;
  readonly onInput: (text: string) => void;
  readonly onBlur?: () => void;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly type?: 'text' | 'password' | 'date' | 'search';
  readonly class?: string;
  readonly placeholder?: string;
  readonly autocomplete?: string;
  readonly maxLength?: number;
  readonly required?: boolean;
  /** Id of a `datalist` with suggestions. */
  readonly list?: string;
}

export function InputField({ label, hint, onInput, type = 'text', ...rest }: InputProps): VNode {
  const attributes: object = { type, autocomplete: 'off', spellcheck: false, ...rest };
  return (
    <Field label={label} hint={hint}>
      <input {...attributes} onInput={(event) => onInput(event.currentTarget.value)} />
    </Field>
  );
}

interface ValueProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}
type ChoiceProps = ValueProps & { readonly options: Options };

export function Select(props: Omit<ChoiceProps, 'label'> & { readonly label?: string }): VNode {
  const { label, value, options, onChange } = props;
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}

export function Choices(props: ChoiceProps & { readonly isLabelHidden?: boolean }): VNode {
  const { label, value, options, onChange, isLabelHidden = false } = props;
  const name = useId();
  return (
    <fieldset class="field">
      <legend class={isLabelHidden ? 'visually-hidden' : 'field-label'}>{label}</legend>
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

interface CheckProps {
  readonly label: ComponentChildren;
  readonly isOn: boolean;
  readonly onChange: () => void;
}

export function Check({ label, isOn, onChange }: CheckProps): VNode {
  return (
    <label class="row check">
      <input type="checkbox" checked={isOn} onChange={onChange} />
      <span class="break">{label}</span>
    </label>
  );
}

interface ChecksProps<T extends string> {
  readonly label: string;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly chosen: readonly T[];
  readonly onChange: (chosen: readonly T[]) => void;
}

export function Checks<T extends string>(props: ChecksProps<T>): VNode {
  const { label, options, chosen, onChange } = props;
  const toggle = (value: T): void =>
    onChange(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value]);
  return (
    <fieldset class="checks">
      <legend class="field-label">{label}</legend>
      {options.map(([value, text]) => (
        <Check key={value} label={text} isOn={chosen.includes(value)} onChange={() => toggle(value)} />
      ))}
    </fieldset>
  );
}

/**
 * The text takes effect when the user presses Enter, leaves the input or, with `pauseMs`, stops
 * typing for that long.
 */
export function useTyped(value: string, onChange: (value: string) => void, pauseMs?: number) {
  const [text, setText] = useState(value);
  const committed = useRef(value);
  useEffect(() => {
    // While the user types, their text must not be replaced with its trimmed form.
    if (value !== committed.current.trim()) setText(value);
    committed.current = value;
  }, [value]);
  const commit = (): void => {
    if (text.trim() === committed.current.trim()) return;
    committed.current = text;
    onChange(text.trim());
  };
  useEffect(() => {
    if (pauseMs === undefined) return;
    const timer = setTimeout(commit, pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return {
    value: text,
    onInput: setText,
    onBlur: commit,
    onKeyDown: ({ key }: KeyboardEvent) => {
      if (key === 'Enter') commit();
    },
  };
}

export function SelectField({ label, hint, ...select }: ChoiceProps & Pick<FieldProps, 'hint'>): VNode {
  return (
    <Field label={label} hint={hint}>
      <Select {...select} />
    </Field>
  );
}

/** Escape closes the menu. */
export function Menu({ label, children }: Pick<FieldProps, 'label' | 'children'>): VNode {
  const details = useRef<HTMLDetailsElement>(null);
  return (
    <details
      ref={details}
      class="menu"
      onKeyDown={({ key }) => {
        if (key !== 'Escape' || details.current === null) return;
        details.current.open = false;
        details.current.querySelector('summary')?.focus();
      }}
    >
      <summary class="button">
        {label}
        <Icon name="down" size={12} />
      </summary>
      <div class="stack menu-list">{children}</div>
    </details>
  );
}

export interface FilterTextProps extends ValueProps, Pick<InputProps, 'placeholder' | 'type' | 'list'> {
  readonly pauseMs?: number;
}

export function FilterText({ value, pauseMs, onChange, ...rest }: FilterTextProps): VNode {
  return <InputField type="search" {...rest} {...useTyped(value, onChange, pauseMs)} />;
}

export interface ButtonProps {
  readonly look?: 'main' | 'quiet' | 'danger' | 'quiet button-icon' | undefined;
  /** If one of these scopes is missing, the button is disabled, and its tooltip says why. */
  readonly scopes?: Scope | readonly Scope[] | undefined;
  readonly disabled?: boolean;
  readonly title?: string | undefined;
  readonly type?: 'button' | 'submit';
  /** Form that the button submits from outside. */
  readonly form?: string;
  readonly isExpanded?: boolean;
  readonly onClick?: () => void;
  readonly children: ComponentChildren;
}

export function Button({ look, scopes, isExpanded, title, disabled = false, ...rest }: ButtonProps): VNode {
  const missing = [scopes ?? []].flat().find((scope) => !mayUse(scope));
  return (
    <button
      type="button"
      {...rest}
      class={look === undefined ? 'button' : `button button-${look}`}
      disabled={disabled || missing !== undefined}
      title={missing === undefined ? title : `The key lacks the scope ${missing}`}
      aria-expanded={isExpanded}
    />
  );
}

/**
 * Label of a button in a row. Only screen readers read the subject, because they do not announce
 * the row.
 */
export function named(verb: string, subject: string): VNode {
  return (
    <>
      {verb}
      <span class="visually-hidden"> {subject}</span>
    </>
  );
}

interface ActionProps extends Omit<ButtonProps, 'onClick' | 'type' | 'form' | 'isExpanded'> {
  readonly act: () => Promise<unknown>;
}

/** An error is shown below the button until the next attempt. */
export function ActionButton({ act, disabled = false, ...rest }: ActionProps): VNode {
  const action = useAction(act);
  return (
    <>
      <Button {...rest} disabled={disabled || action.isRunning} onClick={() => void action.run()} />
      <Problems error={action.error} />
    </>
  );
}

const shownMs = 1_500;

export function CopyButton(props: { readonly text: string; readonly label?: string }): VNode {
  const { text, label = 'Copy' } = props;
  const [message, setMessage] = useState<string | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setMessage(null), shownMs);
    return () => clearTimeout(timer);
  }, [message]);
  const copy = async (): Promise<void> => {
    try {
      // Browsers do not offer a clipboard to pages that were loaded without TLS.
      await navigator.clipboard.writeText(text);
      setMessage('Copied');
    } catch {
      setMessage('Select and copy');
    }
  };
  return (
    <Button look="quiet" onClick={() => void copy()}>
      <Icon name={message === 'Copied' ? 'check' : 'copy'} size={12} />
      <span aria-live="polite">{message ?? label}</span>
    </Button>
  );
}

/** The element can be focused, so that long lines can be scrolled by keyboard. */
export function Code({ children }: { readonly children: ComponentChildren }): VNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too
    <pre class="code" tabIndex={0}>
      {children}
    </pre>
  );
}

export function Copied({ text }: { readonly text: string }): VNode {
  return (
    <span class="row copied">
      <span class="mono">{text}</span>
      <CopyButton text={text} />
    </span>
  );
}
