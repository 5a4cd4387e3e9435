import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useAction, useData, useSubmit } from '../lib/api.ts';
import { Button, type ButtonProps } from './controls.tsx';
import { iconOnly } from './drawings.tsx';
import { Problems } from './page.tsx';

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
    <dialog ref={dialog} class="dialog" aria-labelledby={heading} onClose={onClose}>
      <header class="row spread dialog-head">
        <h2 id={heading}>{title}</h2>
        <Button look="quiet button-icon" onClick={onClose}>
          {iconOnly('close', 'Close')}
        </Button>
      </header>
      <div class="stack dialog-body">{children}</div>
      {foot === undefined ? null : <footer class="row foot-bar">{foot}</footer>}
    </dialog>
  );
}

interface OpenerProps extends Omit<ButtonProps, 'onClick' | 'children'> {
  readonly label: ComponentChildren;
  readonly children: (close: () => void) => ComponentChildren;
}

export function DialogButton({ label, children, ...button }: OpenerProps): VNode {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen ? children(() => setOpen(false)) : null}
    </>
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
  const action = useSubmit(async () => {
    await act();
    onClose();
  });
  const id = useId();
  const foot = (
    <Button type="submit" form={id} look="main" disabled={!isComplete || action.isRunning}>
      {verb}
    </Button>
  );
  return (
    <Dialog title={title} onClose={onClose} foot={foot}>
      <form id={id} class="stack" onSubmit={action.onSubmit}>
        <Problems error={action.error} />
        {children}
      </form>
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
  /** Choices below the sentence. */
  readonly beside?: ComponentChildren;
  /** The text of the button, with the number: "Cancel 14 jobs". */
  readonly verb: (count: number) => string;
  readonly isDestructive?: boolean;
  /** Tells, once they are counted, whether it makes sense with none. */
  readonly mayBeNone?: () => boolean;
  /** The dialog closes when it worked, and else shows the error. */
  readonly act: (count: number) => Promise<unknown>;
  readonly onClose: () => void;
}

/** Asks before something is done to many, or for good. Until the server has counted, nothing can be done. */
function Confirm(props: ConfirmProps): VNode {
  const { title, sentence, beside, verb, act, onClose } = props;
  const { count = async () => 1, mayBeNone, isDestructive } = props;
  const { data: number, error, reload } = useData('count', count);
  const action = useAction(async () => {
    await act(number ?? 0);
    onClose();
  });
  const isNothing = number === undefined || (number === 0 && mayBeNone?.() !== true);
  const look = isDestructive === true ? 'danger' : 'main';
  const foot = (
    <>
      <Button onClick={onClose}>Keep as is</Button>
      <Button look={look} disabled={isNothing || action.isRunning} onClick={() => void action.run()}>
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
      {beside}
    </Dialog>
  );
}

type ConfirmButtonProps = Omit<ConfirmProps, 'onClose'> & Omit<OpenerProps, 'title' | 'children'>;

/** A button for what is asked about first. */
export function ConfirmButton(props: ConfirmButtonProps): VNode {
  const { label, look, needs, disabled = false, ...confirm } = props;
  return (
    <DialogButton label={label} disabled={disabled} {...(look && { look })} {...(needs && { needs })}>
      {(close) => <Confirm {...confirm} onClose={close} />}
    </DialogButton>
  );
}
