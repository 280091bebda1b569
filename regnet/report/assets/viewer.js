// The viewer: unpacked and started by its button.
(() => {
  "use strict";
  const button = document.getElementById("start");
  if (!button) return;
  const state = document.getElementById("viewer-state");
  const held = (name) => document.getElementById("held-" + name).textContent;

  const unpacked = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).blob();
  };
  const loadScript = async () => {
    const address = URL.createObjectURL(new Blob([await unpacked(held("niivue"))], { type: "text/javascript" }));
    await new Promise((done, failed) => {
      const script = document.createElement("script");
      script.onload = done;
      script.onerror = () => failed(new Error("the viewer cannot be loaded"));
      script.src = address;
      document.head.append(script);
    });
    URL.revokeObjectURL(address);
  };

  const start = async () => {
    await loadScript();
    document.getElementById("viewer").hidden = false;
    const { Niivue, NVImage } = window.niivue;
    const shown = new Niivue({
      backColor: [0, 0, 0, 1],
      crosshairColor: [1, 0.62, 0.11, 0.7],
      crosshairWidth: 0.5,
      dragAndDropEnabled: false,
      logLevel: "error",
      multiplanarLayout: 2, // a grid of four, the last of them in space
      multiplanarShowRender: 1,
    });
    await shown.attachToCanvas(document.getElementById("canvas"));
    const add = async (name, colormap, opacity) => {
      const about = { name: name + ".nii.gz", colormap, opacity, cal_min: 0, cal_max: 255 };
      shown.addVolume(await NVImage.loadFromBase64({ base64: held(name), ...about }));
    };
    const blueToRed = { R: [0, 255, 255], G: [0, 255, 0], B: [255, 255, 0], A: [255, 255, 255], I: [0, 128, 255] };
    shown.addColormap("determinant", blueToRed);
    await add("fixed", "gray", 1);
    await add("moved", "gray", 0);
    await add("jacobian", "determinant", 0);
    shown.setSliceType(shown.sliceTypeMultiplanar);
    const overlay = document.getElementById("overlay");
    const opacity = document.getElementById("opacity");
    const update = () => {
      for (const index of [1, 2]) shown.setOpacity(index, Number(overlay.value) === index ? opacity.value / 100 : 0);
    };
    overlay.addEventListener("change", update);
    opacity.addEventListener("input", update);
    update();
    document.documentElement.dataset.viewer = "ready";
  };

  button.addEventListener("click", () => {
    button.disabled = true;
    state.textContent = "opening …";
    start().then(
      () => {
        button.remove();
        state.textContent = "drag to move through the image, scroll to change the slice";
      },
      (error) => {
        state.textContent = "The viewer does not work in this browser: " + error.message;
      },
    );
  });
})();
