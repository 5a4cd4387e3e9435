import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useSubmit } from '../lib/data.ts';
import { Button, type ButtonProps } from './controls.tsx';
import { iconOnly } from './drawings.tsx';
import { Problems } from './page.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly foot?: ComponentChildren;
}

/** Escape closes the dialog and returns the focus. */
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
  readonly isReady?: boolean | undefined;
  readonly isDestructive?: boolean | undefined;
  /** Content to the left of the button. */
  readonly beside?: ComponentChildren;
  /** The dialog closes if the action succeeds, and otherwise shows the error. */
  readonly act: () => Promise<unknown>;
}

export function FormDialog(props: FormProps): VNode {
  const { title, verb, isReady = true, isDestructive = false, beside, act, onClose, children } = props;
  const action = useSubmit(async () => {
    await act();
    onClose();
  });
  const id = useId();
  const look = isDestructive ? 'danger' : 'main';
  const foot = (
    <>
      {beside}
      <Button type="submit" form={id} look={look} disabled={!isReady || action.isRunning}>
        {verb}
      </Button>
    </>
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

interface ConfirmProps extends Omit<FormProps, 'beside' | 'children'> {
  /** Consequence of the action, such as "14 rows will not be processed". */
  readonly sentence: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** Dialog that confirms an irreversible action. Its title names the action, such as "Delete u1". */
export function Confirm({ sentence, children, ...form }: ConfirmProps): VNode {
  return (
    <FormDialog {...form} beside={<Button onClick={form.onClose}>Keep as is</Button>}>
      <div aria-live="polite">{sentence}</div>
      {children}
    </FormDialog>
  );
}

type ConfirmButtonProps = Omit<ConfirmProps, 'onClose'> & Omit<OpenerProps, 'title' | 'children'>;

export function ConfirmButton({ label, look, scopes, ...confirm }: ConfirmButtonProps): VNode {
  return (
    <DialogButton label={label} look={look} scopes={scopes}>
      {(close) => <Confirm {...confirm} onClose={close} />}
    </DialogButton>
  );
}
