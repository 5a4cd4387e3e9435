import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { useAction, useData } from '../lib/use-data.ts';
import { Icon } from './icons.tsx';
import { Problems } from './problems.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Buttons. */
  readonly foot?: ComponentChildren;
}

/** A modal dialog, open as long as it is there. Escape closes it, and the focus goes back to where it was. */
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

interface ConfirmProps {
  /** What is asked, such as "Cancel jobs". */
  readonly title: string;
  /** The number, from the server. */
  readonly count: (signal: AbortSignal) => Promise<number>;
  /** The sentence with the number: "14 jobs will be cancelled. What they have applied stays." */
  readonly sentence: (count: number) => ComponentChildren;
  /** On the button, with the number: "Cancel 14 jobs". */
  readonly verb: (count: number) => string;
  readonly isDestructive?: boolean;
  /** It makes sense with none, too; asked when they are counted. */
  readonly mayBeNone?: () => boolean;
  /** Does it; what fails is shown in the dialog, which stays open. It closes when it worked. */
  readonly act: (count: number) => Promise<unknown>;
  readonly onClose: () => void;
}

/** Asks before something is done to many, or for good. The server says how many first; until it has, nothing can be done. */
export function Confirm(props: ConfirmProps): VNode {
  const { title, count, sentence, verb, isDestructive = false, mayBeNone, act, onClose } = props;
  const counted = useData('count', count);
  const number = counted.data;
  const action = useAction(() => act(number ?? 0));
  const go = async (): Promise<void> => {
    if (await action.run()) onClose();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      foot={
        <>
          <button type="button" class="button" onClick={onClose}>
            Keep as is
          </button>
          <button
            type="button"
            class={isDestructive ? 'button button-danger' : 'button button-main'}
            disabled={number === undefined || (number === 0 && mayBeNone?.() !== true) || action.isRunning}
            onClick={() => void go()}
          >
            {number !== undefined ? verb(number) : counted.error === null ? 'Counting …' : 'Not counted'}
          </button>
        </>
      }
    >
      <Problems
        error={counted.error ?? action.error}
        {...(counted.error?.isPassing === true ? { onRetry: counted.reload } : {})}
      />
      <div aria-live="polite">
        {number === undefined && counted.error === null ? <p class="faint">The server counts …</p> : null}
        {number === undefined ? null : <p>{sentence(number)}</p>}
      </div>
    </Dialog>
  );
}
