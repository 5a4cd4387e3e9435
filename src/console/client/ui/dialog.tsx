import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { useAction, useData } from '../lib/use-data.ts';
import { Button, Code, CopyButton } from './button.tsx';
import { Icon } from './icons.tsx';
import { Problems } from './problems.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Buttons. */
  readonly foot?: ComponentChildren;
}

/** A modal dialog. Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, children, foot }: DialogProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    const open = dialog.current;
    open?.showModal();
    return () => {
      open?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={heading} onCancel={onClose}>
      <header class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" class="button button-quiet button-icon" onClick={onClose} aria-label="Close">
          <Icon name="close" />
        </button>
      </header>
      <div class="dialog-body">{children}</div>
      {foot === undefined ? null : <footer class="dialog-foot">{foot}</footer>}
    </dialog>
  );
}

interface FormProps extends Omit<DialogProps, 'foot'> {
  readonly verb: string;
  readonly isComplete: boolean;
  /** The dialog closes when it worked, and else shows the error. */
  readonly act: () => Promise<unknown>;
}

/** Fields to fill in, and one button. */
export function FormDialog({ verb, isComplete, act, onClose, children, title }: FormProps): VNode {
  const action = useAction(act);
  const id = useId();
  const submit = async (): Promise<void> => {
    if (await action.run()) onClose();
  };
  const foot = (
    <Button type="submit" form={id} look="main" disabled={!isComplete || action.isRunning}>
      {verb}
    </Button>
  );
  return (
    <Dialog title={title} onClose={onClose} foot={foot}>
      <form
        id={id}
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Problems error={action.error} />
        {children}
      </form>
    </Dialog>
  );
}

interface SecretProps {
  readonly noun: string;
  readonly text: string;
  readonly hint: string;
  readonly onClose: () => void;
}

/** A key or a secret that the server shows once. */
export function SecretDialog({ noun, text, hint, onClose }: SecretProps): VNode {
  return (
    <Dialog title={`The ${noun}, shown only this once`} onClose={onClose}>
      <Code>{text}</Code>
      <div class="row">
        <CopyButton text={text} label={`Copy the ${noun}`} />
      </div>
      <p class="hint">{hint}</p>
    </Dialog>
  );
}

interface ConfirmProps {
  /** Names the deed, such as "Cancel jobs". */
  readonly title: string;
  /** Asks the server for the number. Without it there is nothing to count. */
  readonly count?: (signal: AbortSignal) => Promise<number>;
  /** The sentence with the number: "14 jobs will be cancelled. What they have applied stays." */
  readonly sentence: (count: number) => ComponentChildren;
  /** The text of the button, with the number: "Cancel 14 jobs". */
  readonly verb: (count: number) => string;
  readonly isDestructive?: boolean;
  /** Tells, once they are counted, whether it makes sense with none. */
  readonly mayBeNone?: () => boolean;
  /** The dialog closes when it worked, and else shows the error. */
  readonly act: (count: number) => Promise<unknown>;
  readonly onClose: () => void;
}

const one = async (): Promise<number> => 1;

/** Asks before something is done to many, or for good. Until the server has counted, nothing can be done. */
export function Confirm(props: ConfirmProps): VNode {
  const { title, count = one, sentence, verb, isDestructive = false, mayBeNone, act, onClose } = props;
  const { data: number, error, reload } = useData('count', count);
  const action = useAction(() => act(number ?? 0));
  const go = async (): Promise<void> => {
    if (await action.run()) onClose();
  };
  const isNothing = number === undefined || (number === 0 && mayBeNone?.() !== true);
  const foot = (
    <>
      <Button onClick={onClose}>Keep as is</Button>
      <Button
        look={isDestructive ? 'danger' : 'main'}
        disabled={isNothing || action.isRunning}
        onClick={() => void go()}
      >
        {number !== undefined ? verb(number) : error === null ? 'Counting …' : 'Not counted'}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} foot={foot}>
      <Problems error={error ?? action.error} {...(error?.isPassing === true ? { onRetry: reload } : {})} />
      <div aria-live="polite">
        {number === undefined && error === null ? <p class="faint">The server is counting …</p> : null}
        {number === undefined ? null : <p>{sentence(number)}</p>}
      </div>
    </Dialog>
  );
}
