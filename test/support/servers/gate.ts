/** A point at which work waits until the test opens it, as if the process were paused. */
export interface Gate<T = void> {
  /** Resolves with the value that the work passes when it arrives at the gate. */
  readonly arrived: Promise<T>;
  /** Called by the work. Resolves when the gate is open. */
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
