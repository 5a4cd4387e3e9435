/** A point at which work waits until the test opens it, like a paused process. */
export interface Gate<T = void> {
  /** Resolves once work is at the gate, with the value that it passed. */
  readonly arrived: Promise<T>;
  /** Resolves once the gate is open. */
  pass(value: T): Promise<void>;
  open(): void;
}

export function closedGate<T = void>(): Gate<T> {
  let arrive: (value: T) => void = () => undefined;
  let open: () => void = () => undefined;
  const arrived = new Promise<T>((resolve) => {
    arrive = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    arrived,
    open: () => open(),
    pass(value) {
      arrive(value);
      return opened;
    },
  };
}
