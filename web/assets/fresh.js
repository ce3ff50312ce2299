addEventListener("pageshow", (event) => event.persisted && location.reload());
