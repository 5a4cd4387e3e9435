import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useAction, useSubmit } from '../lib/data.ts';
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
  /** Names the deed, such as "Delete u1". */
  readonly title: string;
  /** The meaning for the user: "14 rows will not be processed. What has been applied stays." */
  readonly sentence: ComponentChildren;
  /** Choices below the sentence. */
  readonly beside?: ComponentChildren;
  /** The text of the button. */
  readonly verb: string;
  readonly isDestructive?: boolean;
  readonly isReady?: boolean;
  /** The dialog closes when it worked, and else shows the error. */
  readonly act: () => Promise<unknown>;
  readonly onClose: () => void;
}

/** Asks before something is done to many, or for good. */
export function Confirm(props: ConfirmProps): VNode {
  const { title, sentence, beside, verb, isDestructive = false, isReady = true } = props;
  const { act, onClose } = props;
  const action = useAction(async () => {
    await act();
    onClose();
  });
  const foot = (
    <>
      <Button onClick={onClose}>Keep as is</Button>
      <Button
        look={isDestructive ? 'danger' : 'main'}
        disabled={!isReady || action.isRunning}
        onClick={() => void action.run()}
      >
        {verb}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} foot={foot}>
      <Problems error={action.error} />
      <div aria-live="polite">{sentence}</div>
      {beside}
    </Dialog>
  );
}

type ConfirmButtonProps = Omit<ConfirmProps, 'onClose'> & Omit<OpenerProps, 'title' | 'children'>;

/** A button for what is asked about first. */
export function ConfirmButton({ label, look, needs, ...confirm }: ConfirmButtonProps): VNode {
  return (
    <DialogButton label={label} look={look} needs={needs}>
      {(close) => <Confirm {...confirm} onClose={close} />}
    </DialogButton>
  );
}
