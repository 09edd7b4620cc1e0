/** Windows over the page, and notes that pass. */

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import { X } from "lucide-preact";

import type { Problem } from "../api/client";
import { t } from "../text";
import { Button, IconButton, TextField } from "./controls";
import { ProblemNote } from "./layout";

/** A window over the page, closed by Escape too; the focus goes back to where it was. */
export function Dialog(props: { title: string; onClose: () => void; side?: boolean; actions?: ComponentChildren; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={box}
      class={props.side ? "dialog side" : "dialog"}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => event.target === box.current && props.onClose()}
    >
      <div class="dialog-box">
        <div class="dialog-head">
          <h2 id={title}>{props.title}</h2>
          <IconButton label={t("shell.close")} icon={<X aria-hidden="true" />} onClick={props.onClose} />
        </div>
        <div class="dialog-body">{props.children}</div>
        {props.actions && <div class="dialog-actions">{props.actions}</div>}
      </div>
    </dialog>
  );
}

/** Asks before something is done that cannot be taken back.
 *
 * @param word what has to be typed first, for what destroys much.
 */
export function Confirm(props: { title: string; act: string; onConfirm: () => void; onClose: () => void; busy?: boolean; problem?: Problem | undefined; word?: string; children: ComponentChildren }) {
  const [typed, setTyped] = useState("");
  return (
    <Dialog
      title={props.title}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="danger" busy={props.busy ?? false} disabled={!!props.word && typed !== props.word} onClick={props.onConfirm}>
            {props.act}
          </Button>
        </>
      }
    >
      {props.children}
      {props.word && (
        <TextField label={t("shell.typed_confirm", { word: props.word })} value={typed} autocomplete="off" onInput={(event) => setTyped(event.currentTarget.value)} />
      )}
      {props.problem && <ProblemNote problem={props.problem} />}
    </Dialog>
  );
}

interface Toast {
  id: number;
  text: string;
  undo?: (() => void) | undefined;
}

const Toasts = createContext<(text: string, undo?: () => void) => void>(() => undefined);

/** Says in passing that something was done, with a way back where there is one. */
export function useToast() {
  return useContext(Toasts);
}

const SECONDS = 8;

export function ToastHost(props: { children: ComponentChildren }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const drop = (id: number) => setToasts((before) => before.filter((toast) => toast.id !== id));
  const show = (text: string, undo?: () => void) => {
    const id = performance.now();
    setToasts((before) => [...before.slice(-2), { id, text, undo }]);
    setTimeout(() => drop(id), SECONDS * 1000);
  };
  return (
    <Toasts.Provider value={show}>
      {props.children}
      <div class="toasts" role="status">
        {toasts.map((toast) => (
          <div key={toast.id} class="toast">
            <span>{toast.text}</span>
            {toast.undo && (
              <Button
                kind="quiet"
                onClick={() => {
                  toast.undo?.();
                  drop(toast.id);
                }}
              >
                {t("shell.undo")}
              </Button>
            )}
          </div>
        ))}
      </div>
    </Toasts.Provider>
  );
}
