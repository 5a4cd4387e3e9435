import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useQuery } from '../lib/address.ts';
import { mayUse, type Scope } from '../lib/api.ts';
import type { Form } from '../lib/repeat.ts';
import { useAction } from '../lib/use-data.ts';
import { Choices } from './field.tsx';
import { Icon } from './icons.tsx';
import { Problems } from './problems.tsx';

interface ButtonProps {
  readonly look?: 'main' | 'quiet' | 'danger' | 'quiet button-icon';
  /** Without these scopes the button is disabled, and its tooltip names what is missing. */
  readonly needs?: Scope | readonly Scope[];
  readonly disabled?: boolean;
  readonly title?: string | undefined;
  readonly type?: 'button' | 'submit';
  /** Id of the form that a button outside of it submits. */
  readonly form?: string;
  readonly isExpanded?: boolean;
  readonly onClick?: () => void;
  readonly children: ComponentChildren;
}

export function Button(props: ButtonProps): VNode {
  const {
    look,
    needs,
    disabled = false,
    title,
    type = 'button',
    form,
    isExpanded,
    onClick,
    children,
  } = props;
  const missing = [needs ?? []].flat().find((scope) => !mayUse(scope));
  return (
    <button
      type={type}
      form={form}
      class={look === undefined ? 'button' : `button button-${look}`}
      disabled={disabled || missing !== undefined}
      title={missing === undefined ? title : `The key lacks the scope ${missing}`}
      aria-expanded={isExpanded}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

interface ActionProps extends Omit<ButtonProps, 'onClick' | 'type' | 'form' | 'isExpanded'> {
  readonly act: () => Promise<unknown>;
}

/** A button that does something once at a time. If it fails, the error stands below until the next try. */
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

/** Copies the text, and says so in its own place for a moment. */
export function CopyButton({
  text,
  label = 'Copy',
}: {
  readonly text: string;
  readonly label?: string;
}): VNode {
  const [state, setState] = useState<'ready' | 'done' | 'refused'>('ready');
  useEffect(() => {
    if (state === 'ready') return;
    const timer = setTimeout(() => setState('ready'), shownMs);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setState('done'),
      () => setState('refused'),
    );
  };
  const words = { ready: label, done: 'Copied', refused: 'Select and copy' };
  return (
    <Button look="quiet" onClick={copy}>
      <Icon name={state === 'done' ? 'check' : 'copy'} size={12} />
      <span aria-live="polite">{words[state]}</span>
    </Button>
  );
}

/** A block of text. It can be focused, so that long lines are scrolled by keyboard too. */
export function Code({ children }: { readonly children: ComponentChildren }): VNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too
    <pre class="code" tabIndex={0}>
      {children}
    </pre>
  );
}

/** The same thing as `curl`, on the command line, and so on. The chosen form stands in the address. */
export function CopyAs({ forms }: { readonly forms: readonly Form[] }): VNode | null {
  const query = useQuery();
  const form = forms.find((each) => each.name === query.get('as')) ?? forms[0];
  if (form === undefined) return null;
  return (
    <div class="copy-as">
      <div class="copy-as-head">
        <Choices
          label="Written as"
          isLabelHidden
          value={form.name}
          options={forms.map(({ name }) => [name, name])}
          onChange={(name) => query.set({ as: name === forms[0]?.name ? '' : name }, { replace: true })}
        />
        <CopyButton text={form.text} />
      </div>
      <Code>{form.text}</Code>
      {form.hint === undefined ? null : <p class="hint">{form.hint}</p>}
    </div>
  );
}
